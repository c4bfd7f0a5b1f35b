-- What there is once, for memories and episodes together; kind.sql has what there is of each. Version 2: version 1 lacked
-- what belongs to nodes. Overflow Tree, section 1. Every statement may run on a database that has the object already.

CREATE TABLE IF NOT EXISTS record_nodes (
    parent_kind     TEXT    NOT NULL,   -- 'mem' | 'ep'
    parent_id       INTEGER NOT NULL,
    node_index      INTEGER NOT NULL,   -- 0, 1, 2, ... in text order
    start_char      INTEGER NOT NULL,   -- inclusive offset into the parent text
    end_char        INTEGER NOT NULL,   -- exclusive offset
    token_count     INTEGER NOT NULL,   -- as counted by the embedding server
    window          INTEGER NOT NULL,   -- the window the span was cut against
    embedding       BLOB,
    embedding_model TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (parent_kind, parent_id, node_index)
);
-- What a node set was made of and what it was when written: finds what no trigger saw.
CREATE TABLE IF NOT EXISTS node_sets (
    parent_kind  TEXT    NOT NULL,
    parent_id    INTEGER NOT NULL,
    text_sha256  TEXT    NOT NULL,      -- of the stored bytes that were divided
    nodes_sha256 TEXT    NOT NULL,      -- of the rows in record_nodes
    PRIMARY KEY (parent_kind, parent_id)
);
-- What a record's own vector was made of. A vector without a row here is believed.
CREATE TABLE IF NOT EXISTS record_vectors (
    parent_kind TEXT    NOT NULL,
    parent_id   INTEGER NOT NULL,
    text_sha256 TEXT    NOT NULL,
    PRIMARY KEY (parent_kind, parent_id)
);
CREATE TABLE IF NOT EXISTS tasks (
    type            TEXT    NOT NULL,            -- 'nodes'
    kind            TEXT    NOT NULL,
    id              INTEGER NOT NULL,
    token_count     INTEGER,                     -- these three: the report on the text when it was stored, if known
    window          INTEGER,
    window_end_char INTEGER,
    attempts        INTEGER NOT NULL DEFAULT 0,  -- how often it was claimed, and not given back
    due_at          REAL    NOT NULL DEFAULT 0,  -- seconds, as the store's clock
    lease_until     REAL,
    lease_owner     TEXT,
    last_error      TEXT,
    PRIMARY KEY (type, kind, id)
);
CREATE INDEX IF NOT EXISTS tasks_due ON tasks (due_at);
-- Work on a record that failed, so that others come first.
CREATE TABLE IF NOT EXISTS failures (
    work        TEXT    NOT NULL,            -- 'nodes' | 'vector'
    parent_kind TEXT    NOT NULL,
    parent_id   INTEGER NOT NULL,
    attempts    INTEGER NOT NULL,
    undividable INTEGER NOT NULL,            -- 1: no character of it fits the window
    reason      TEXT    NOT NULL,
    PRIMARY KEY (work, parent_kind, parent_id)
);

CREATE VIEW IF NOT EXISTS records (
    kind, id, agent, project, channel, text, locked, created_at, updated_at, embedding, embedding_model
) AS
SELECT 'mem', id, agent, project, channel, content, locked, created_at, updated_at, embedding, embedding_model
FROM memories
UNION ALL
SELECT 'ep', id, agent, project, channel, summary, locked, created_at, updated_at, embedding, embedding_model
FROM episodes;

-- The text the lexical index holds. Its tokenizer stops at a NUL, so each NUL is a space there.
CREATE VIEW IF NOT EXISTS searchable (kind, id, text) AS
SELECT kind, id, CASE WHEN instr(CAST(text AS BLOB), x'00') = 0 THEN CAST(text AS TEXT) ELSE (
    WITH RECURSIVE part (head, rest) AS (
        SELECT NULL, CAST(CAST(text AS BLOB) || x'00' AS BLOB)
        UNION ALL
        SELECT substr(rest, 1, instr(rest, x'00') - 1), substr(rest, instr(rest, x'00') + 1)
        FROM part WHERE rest <> x''
    )
    SELECT group_concat(CAST(head AS TEXT), ' ') FROM part WHERE head IS NOT NULL
) END
FROM records;
