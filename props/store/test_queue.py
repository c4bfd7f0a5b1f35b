"""The queue: leases, back-off, giving up, and what becomes of a task whose record or server changed meanwhile."""

from collections.abc import Sequence
from contextlib import closing

import pytest

from overflow.store import Drained, Ref, Scope, queue
from overflow.store.database import Database
from overflow.store.queue import BACK_OFF, BACK_OFF_FACTOR, LEASE, MAX_ATTEMPTS, Task
from overflow.tokens.report import TokenReport
from overflow.tokens.synthetic import SyntheticWindow
from props.store.conftest import Bench

LONG = "one two three four five six seven eight nine. "
OTHER = "other words that run well past the window too. "
TASKS = "SELECT kind, id, attempts, due_at, lease_until, last_error FROM tasks ORDER BY kind, id"


def test_a_queued_record_is_built_once(bench: Bench) -> None:
    """A record waits once however often it changes, and its task ends with its build."""
    store, raw = bench.open(), bench.raw()
    ref = store.store(LONG, Scope()).ref
    raw.execute("UPDATE memories SET content = content || 'more'")
    store.update(ref, LONG)
    assert raw.execute("SELECT count(*) FROM tasks").fetchone() == (1,), "a record waits once, however often it changes"
    assert store.drain() == Drained(built=1, failed=0)
    assert raw.execute(TASKS).fetchall() == []
    asked = len(bench.embedder.embedded)
    assert store.drain() == Drained(built=0, failed=0)
    assert len(bench.embedder.embedded) == asked


def test_a_run_without_anything_to_build_asks_for_the_identity_once(bench: Bench) -> None:
    """A drain learns it in any case; a task whose record is built already is no build."""
    store, raw = bench.open(), bench.raw()
    store.store(LONG, Scope())
    store.drain()
    raw.execute(
        "INSERT INTO tasks (type, kind, id, attempts) VALUES ('nodes', 'mem', 1, ?)",
        (MAX_ATTEMPTS - 1,),
    )
    asked: list[str] = []
    bench.embedder.before = lambda what, _texts: asked.append(what)
    assert store.drain() == Drained(built=0, failed=0)
    assert raw.execute(TASKS).fetchall() == raw.execute("SELECT * FROM failures").fetchall() == []
    assert asked == ["identity"]


def test_a_task_of_nothing_ends_without_a_failure(bench: Bench) -> None:
    """However often it was claimed: no record failed."""
    store, raw = bench.open(), bench.raw()
    raw.execute("INSERT INTO tasks (type, kind, id, attempts) VALUES ('nodes', 'mem', 9, ?)", (MAX_ATTEMPTS,))
    assert store.drain() == Drained(built=0, failed=0)
    assert raw.execute(TASKS).fetchall() == raw.execute("SELECT * FROM failures").fetchall() == []


def test_nodes_of_another_model_leave_a_task_to_do(bench: Bench) -> None:
    """They are missing: section 4."""
    store, raw = bench.open(), bench.raw()
    store.store(LONG, Scope())
    store.drain()
    bench.embedder.name = "tiny-2"
    raw.execute("INSERT INTO tasks (type, kind, id) VALUES ('nodes', 'mem', 1)")
    assert store.drain() == Drained(built=1, failed=0)
    assert raw.execute("SELECT DISTINCT embedding_model FROM record_nodes").fetchall() == [("tiny-2",)]


def test_a_short_raw_change_is_queued_and_builds_nothing(bench: Bench) -> None:
    """A trigger cannot measure; the worker finds that the record fits."""
    store, raw = bench.open(), bench.raw()
    store.store(LONG, Scope())
    store.drain()
    raw.execute("UPDATE memories SET content = 'short'")
    assert raw.execute(TASKS).fetchall() == [("mem", 1, 0, 0.0, None, None)]
    assert store.drain() == Drained(built=0, failed=0)
    assert raw.execute(TASKS).fetchall() == raw.execute("SELECT * FROM record_nodes").fetchall() == []


def test_with_the_queue_off_nothing_is_built_until_it_is_on(bench: Bench) -> None:
    """Section 3: with the queue disabled nodes are not built at write time."""
    store, raw = bench.open(queue=False), bench.raw()
    store.store(LONG, Scope())
    raw.execute("UPDATE memories SET content = ?", (OTHER,))
    assert store.drain() == Drained(0, 0)
    assert raw.execute("SELECT * FROM record_nodes").fetchall() == []
    store.queue = True
    assert store.drain() == Drained(built=1, failed=0)


def test_a_failing_task_backs_off_and_is_given_up(bench: Bench) -> None:
    """Each attempt waits longer; the last one ends the task, and the health check still finds its record."""
    store, raw = bench.open(), bench.raw()
    ref = store.store(LONG, Scope()).ref
    bench.embedder.away = True
    for attempt in range(1, MAX_ATTEMPTS):
        assert store.drain() == Drained(built=0, failed=1)
        due = bench.clock.now + BACK_OFF * BACK_OFF_FACTOR ** (attempt - 1)
        assert raw.execute(TASKS).fetchall() == [("mem", 1, attempt, due, None, "the tiny embedder is away")]
        bench.clock.now = due - 0.001
        assert store.drain() == Drained(0, 0), "not due yet"
        bench.clock.now = due
    assert store.drain() == Drained(built=0, failed=1)
    assert raw.execute(TASKS).fetchall() == []
    assert raw.execute("SELECT attempts, reason FROM failures").fetchall() == [(1, "the tiny embedder is away")]
    bench.embedder.away = False
    assert store.check_health().missing_nodes == (ref,)
    assert store.repair().built == 1


def test_a_build_that_succeeds_forgets_earlier_failures(bench: Bench) -> None:
    """A failure only makes a record wait, and only until a build of it succeeds."""
    store, raw = bench.open(), bench.raw()
    store.store(LONG, Scope())
    bench.embedder.refuse = lambda what, text: what == "embed" and text != LONG
    assert store.repair().failed == 1
    failures = raw.execute("SELECT work, attempts, reason FROM failures").fetchall()
    assert failures == [("nodes", 1, "the tiny embedder is away")]
    bench.embedder.refuse = lambda *_: False
    assert store.drain().built == 1
    assert raw.execute("SELECT * FROM failures").fetchall() == []


def test_one_text_the_server_refuses_fails_alone(bench: Bench) -> None:
    """One bad text in a batch keeps no other record from its nodes."""
    store, raw = bench.open(), bench.raw()
    refs = [store.store(f"{LONG}{word}", Scope()).ref for word in ("first", "poison", "last")]
    bench.embedder.refuse = lambda _, text: "poison" in text
    assert store.drain() == Drained(built=2, failed=1)
    assert raw.execute("SELECT DISTINCT parent_id FROM record_nodes").fetchall() == [(1,), (3,)]
    assert [row[:2] for row in raw.execute(TASKS)] == [("mem", refs[1].id)]


def test_a_server_that_is_away_is_asked_little(bench: Bench) -> None:
    """Twenty records that wait cost two requests, not one each."""
    store = bench.open()
    for number in range(20):
        store.store(f"{LONG}{number}", Scope())
    bench.embedder.refuse = lambda what, _: what == "measure"
    bench.embedder.measured.clear()
    assert store.drain() == Drained(built=0, failed=20)
    assert [len(texts) for texts in bench.embedder.measured] == [20, 1]


def test_a_lease_holds_and_runs_out(bench: Bench) -> None:
    """A worker that is killed while building leaves its claim; another takes the task when the lease is over."""
    store, raw = bench.open(), bench.raw()
    store.store(LONG, Scope())

    class Killed(BaseException):
        pass

    def kill(what: str, _texts: Sequence[str]) -> None:
        if what == "measure":
            raise Killed

    bench.embedder.before = kill
    with pytest.raises(Killed):
        store.drain()
    bench.embedder.before = lambda *_: None
    assert raw.execute(TASKS).fetchall() == [("mem", 1, 1, 0.0, bench.clock.now + LEASE, None)]
    other = bench.open()
    assert other.drain() == Drained(0, 0)
    assert other.check_health().findings == {}, "a lease is nothing odd"
    bench.clock.now += LEASE
    assert other.drain() == Drained(built=1, failed=0)


@pytest.mark.parametrize("report", [TokenReport(10, 4, True, 14), TokenReport(2, 1, True, 0)], ids=["any", "least"])
def test_a_claimed_task_has_the_report_it_was_queued_with(bench: Bench, report: TokenReport) -> None:
    """It saves measuring the text again; the least there is counts one token more than a window of one."""
    bench.open()
    with closing(Database(bench.path("a.db"))) as database:
        with database.transaction():
            queue.add(database, Ref("mem", 1), report)
        assert queue.claim(database, "me", 0.0, 1) == [Task(Ref("mem", 1), report, 1)]


def test_a_build_that_kills_every_worker_is_given_up(bench: Bench) -> None:
    """After MAX_ATTEMPTS leases that ran out the task ends, with a failure in its place."""
    store, raw = bench.open(), bench.raw()
    ref = store.store(LONG, Scope()).ref
    raw.execute("UPDATE tasks SET attempts = ?, lease_until = 0", (MAX_ATTEMPTS,))
    assert store.drain() == Drained(0, 0)
    assert raw.execute(TASKS).fetchall() == []
    failures = raw.execute("SELECT work, parent_id, attempts, reason FROM failures").fetchall()
    assert failures == [("nodes", ref.id, 1, "its builds never ended")]


def test_a_record_that_changes_while_it_is_built_is_built_anew(bench: Bench) -> None:
    """The nodes of the old text are not written, and the new text waits in a task of its own."""
    store, raw = bench.open(), bench.raw()
    store.store(LONG, Scope())
    seen = []

    def change(what: str, _texts: Sequence[str]) -> None:
        if what == "embed" and not seen:
            seen.append(what)
            raw.execute("UPDATE memories SET content = ?", (OTHER,))

    bench.embedder.before = change
    assert store.drain() == Drained(built=1, failed=0)
    assert seen
    assert bench.texts_of_nodes(raw) == OTHER


def test_a_text_that_failed_is_no_failure_of_the_one_in_its_place(bench: Bench) -> None:
    """It changed while it was found to be undividable: the new text waits for a server that is away."""
    store, raw = bench.open(), bench.raw()
    bench.embedder.window = SyntheticWindow("triples", 2)
    store.store("\u6f22", Scope())

    def change(what: str, _texts: Sequence[str]) -> None:
        if what == "measure":
            bench.embedder.away = bool(raw.execute("SELECT 1 FROM memories WHERE content = 'now letters'").fetchall())
            raw.execute("UPDATE memories SET content = 'now letters'")

    bench.embedder.before = change
    assert store.drain() == Drained(built=0, failed=2)
    assert raw.execute("SELECT * FROM failures").fetchall() == []
    assert raw.execute("SELECT last_error FROM tasks").fetchall() == [("the tiny embedder is away",)]


def test_a_record_that_goes_while_it_is_built_leaves_nothing(bench: Bench) -> None:
    """Invariant 6: a delete in the middle of a build leaves no node, digest, task or failure."""
    store, raw = bench.open(), bench.raw()
    store.store(LONG, Scope())
    bench.embedder.before = lambda what, _: raw.execute("DELETE FROM memories") if what == "embed" else None
    assert store.drain() == Drained(0, 0)
    for table in ("record_nodes", "node_sets", "tasks", "failures"):
        assert raw.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_a_model_that_changes_while_it_builds_writes_nothing(bench: Bench) -> None:
    """Nobody says so: the server simply has another identity once the spans are embedded."""
    store, raw = bench.open(), bench.raw()
    store.store(LONG, Scope())
    bench.embedder.before = lambda what, _: setattr(bench.embedder, "name", "tiny-2") if what == "embed" else None
    assert store.drain() == Drained(0, 0)
    assert raw.execute("SELECT count(*) FROM record_nodes").fetchone() == (0,)
    bench.clock.now += BACK_OFF
    assert store.drain() == Drained(built=1, failed=0)
    assert raw.execute("SELECT DISTINCT embedding_model FROM record_nodes").fetchall() == [("tiny-2",)]


def test_a_build_in_vain_is_no_failed_attempt(bench: Bench) -> None:
    """However often the model changes under a build, the task waits, and the record is built when that ends."""
    store, raw = bench.open(), bench.raw()
    store.store(LONG, Scope())
    builds: list[str] = []

    def change(what: str, _texts: Sequence[str]) -> None:
        if what == "embed":
            builds.append(what)
            bench.embedder.name = f"tiny after {len(builds)}"

    bench.embedder.before = change
    for _ in range(2 * MAX_ATTEMPTS):
        assert store.drain() == Drained(0, 0)
        (_, _, attempts, due, lease, _) = raw.execute(TASKS).fetchone()
        assert (attempts, lease) == (0, None)
        assert bench.clock.now < due < bench.clock.now + BACK_OFF
        bench.clock.now = due
    assert len(builds) >= 2 * MAX_ATTEMPTS
    assert raw.execute("SELECT * FROM failures").fetchall() == []
    bench.embedder.before = lambda *_: None
    assert store.drain() == Drained(built=1, failed=0)


def test_a_server_whose_identity_is_away_builds_nothing(bench: Bench) -> None:
    """A vector that nobody can name is of no use; the task waits."""
    store, raw = bench.open(), bench.raw()
    store.store(LONG, Scope())
    bench.embedder.unnamed = True
    assert store.drain() == Drained(built=0, failed=1)
    assert store.store(LONG, Scope()).nodes is None
    assert [row[:3] for row in raw.execute(TASKS)] == [("mem", 1, 1)]


def test_unknown_tokens_end_a_task_without_a_failure(bench: Bench) -> None:
    """Unknown is no failure of the record: repair builds it once tokens are known."""
    store, raw = bench.open(), bench.raw()
    store.store(LONG, Scope())
    bench.embedder.window = bench.unknown
    store.drain()
    assert raw.execute(TASKS).fetchall() == raw.execute("SELECT * FROM failures").fetchall() == []
    bench.embedder.window = SyntheticWindow("words", 4)
    assert store.repair().built == 1


def test_a_record_that_cannot_be_divided_ends_its_task_and_is_named(bench: Bench) -> None:
    """No character of it fits the window: a named error, no nodes, quoted from its start, and no other held up."""
    store, raw = bench.open(), bench.raw()
    bench.embedder.window = SyntheticWindow("triples", 2)
    bad = store.store("ab\u6f22\u5b57", Scope()).ref
    good = store.store("only letters here", Scope()).ref
    assert store.drain() == Drained(built=1, failed=1)
    assert raw.execute("SELECT DISTINCT parent_id FROM record_nodes").fetchall() == [(good.id,)]
    health = store.check_health()
    assert (health.missing_nodes, health.findings) == ((bad,), {"undividable": (bad,)})
    failures = raw.execute("SELECT work, attempts, undividable, reason FROM failures").fetchall()
    assert failures == [("nodes", 1, 1, "a window of 2 tokens holds no text at character 2; use a larger window")]
    quote = store.quote(bad, "ab", Scope())
    assert (quote.start, quote.text, quote.node) == (0, "ab\u6f22\u5b57", None)
    store.update(bad, "now letters")
    assert store.check_health().findings == {}


#: What another program may have put in a column of the first of two tasks. A value of no sense counts as if it were
#: not there: the record is measured again, tried as often as any, due now, and leased to nobody.
ODD_TASKS = [
    f"{column} = {value}"
    for column, values in {
        "token_count": ["''", "x''", "9e999", "1e300", "1.5", "-1", "NULL"],
        "window": ["''", "x'ff'", "9e999", "1e-300", "0", "-3", "NULL"],
        "window_end_char": ["'x'", "-5", "9e999", "NULL"],
        "attempts": ["'abc'", "x''", "1.5", "9e999", "-9e999", "-9223372036854775808"],
        "due_at": ["'abc'", "x''", "9e999", "1e308", "-9e999"],
        "lease_until": ["'abc'", "x''", "9e999", "1e308"],
        "lease_owner": ["x'ff'", "CAST(x'ff' AS TEXT)", "7"],
        "last_error": ["x'ff'", "CAST(x'ff' AS TEXT)"],
    }.items()
    for value in values
]


@pytest.mark.parametrize("odd", ODD_TASKS)
def test_an_odd_task_holds_up_nothing(bench: Bench, odd: str) -> None:
    """Whatever a task's columns hold, one drain builds its record and every other one."""
    store, raw = bench.open(), bench.raw()
    for _ in range(2):
        store.store(LONG, Scope())
    raw.execute(f"UPDATE tasks SET {odd} WHERE id = 1")
    assert store.drain() == Drained(built=2, failed=0)
    assert raw.execute("SELECT DISTINCT parent_id FROM record_nodes").fetchall() == [(1,), (2,)]
    assert raw.execute(TASKS).fetchall() == []


@pytest.mark.parametrize("odd", [each for each in ODD_TASKS if each.startswith(("attempts", "due_at"))])
def test_an_odd_task_backs_off_as_any_other(bench: Bench, odd: str) -> None:
    """A server that is away is asked once for it and not without end; its columns are in order from then on."""
    store, raw = bench.open(), bench.raw()
    store.store(LONG, Scope())
    raw.execute(f"UPDATE tasks SET {odd}")
    bench.embedder.away = True
    assert store.drain() == Drained(built=0, failed=1)
    due = bench.clock.now + BACK_OFF
    assert raw.execute(TASKS).fetchall() == [("mem", 1, 1, due, None, "the tiny embedder is away")]


def test_more_attempts_than_there_are_are_used_up(bench: Bench) -> None:
    """However large the number is."""
    store, raw = bench.open(), bench.raw()
    store.store(LONG, Scope())
    raw.execute("UPDATE tasks SET attempts = 9223372036854775807")
    assert store.drain() == Drained(0, 0)
    assert raw.execute(TASKS).fetchall() == []
    assert store.repair().built == 1


@pytest.mark.parametrize("odd", ["token_count = ''", "token_count = 4", "window = 0", "window = -9e999"])
def test_an_odd_report_is_no_claim_that_a_build_is_owed(bench: Bench, odd: str) -> None:
    """The same text again, while the server is away: status is queued exactly when the record is known to be long."""
    store, raw = bench.open(), bench.raw()
    ref = store.store(LONG, Scope()).ref
    bench.embedder.away = True
    raw.execute(f"UPDATE tasks SET {odd}")
    assert store.update(ref, LONG).nodes is None


@pytest.mark.parametrize("attempts", ["'abc'", "x''", "NULL", "9e999", "-9223372036854775808"])
def test_an_odd_count_of_failures_stops_no_repair(bench: Bench, attempts: str) -> None:
    """It orders records by their failures, whatever one of them holds, and then counts on from a number."""
    store, raw = bench.open(queue=False), bench.raw()
    for _ in range(2):
        store.store(LONG, Scope())
    raw.execute("DROP TABLE failures")
    raw.execute(
        "CREATE TABLE failures (work, parent_kind, parent_id, attempts, undividable, reason,"
        " PRIMARY KEY (work, parent_kind, parent_id))"
    )
    raw.execute(f"INSERT INTO failures VALUES ('nodes', 'mem', 1, {attempts}, 0, 'x'), ('nodes', 'mem', 2, 1, 0, 'x')")
    bench.embedder.refuse = lambda what, _: what == "embed"
    assert store.repair().failed == 2
    ((_, first), (_, second)) = raw.execute("SELECT parent_id, attempts FROM failures ORDER BY parent_id").fetchall()
    assert (first >= 1, second) == (True, 2)
    bench.embedder.refuse = lambda *_: False
    assert store.repair().built == 2
