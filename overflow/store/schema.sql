-- The tables, views, lexical indexes and triggers of the reference store, version 2. Overflow Tree, sections 1 and 4.
-- Every statement may run on a database that has the object already; version 1 lacked what belongs to nodes.

CREATE TABLE IF NOT EXISTS memories (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    agent           TEXT    NOT NULL DEFAULT '',
    project         TEXT    NOT NULL DEFAULT '',
    channel         TEXT    NOT NULL DEFAULT '',
    content         TEXT    NOT NULL,
    locked          INTEGER NOT NULL DEFAULT 0,
    created_at      REAL    NOT NULL DEFAULT 0,   -- seconds
    updated_at      REAL    NOT NULL DEFAULT 0,
    embedding       BLOB,                         -- the record's own vector, little-endian float32
    embedding_model TEXT
);
CREATE TABLE IF NOT EXISTS episodes (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    agent           TEXT    NOT NULL DEFAULT '',
    project         TEXT    NOT NULL DEFAULT '',
    channel         TEXT    NOT NULL DEFAULT '',
    summary         TEXT    NOT NULL,
    locked          INTEGER NOT NULL DEFAULT 0,
    created_at      REAL    NOT NULL DEFAULT 0,
    updated_at      REAL    NOT NULL DEFAULT 0,
    embedding       BLOB,
    embedding_model TEXT
);
CREATE INDEX IF NOT EXISTS memories_scope ON memories (agent, project, channel);
CREATE INDEX IF NOT EXISTS episodes_scope ON episodes (agent, project, channel);

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
    attempts        INTEGER NOT NULL DEFAULT 0,  -- how often it was claimed
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

-- With content of their own: REPLACE INTO deletes no row of an external-content index, and so corrupts it. Trigrams,
-- because Japanese and Chinese have no spaces between words.
CREATE VIRTUAL TABLE IF NOT EXISTS memories_fts USING fts5 (text, tokenize = 'trigram');
CREATE VIRTUAL TABLE IF NOT EXISTS episodes_fts USING fts5 (text, tokenize = 'trigram');

-- Traps the triggers avoid. REPLACE INTO comes as an INSERT alone, without a DELETE. UPDATE OR REPLACE of an id removes
-- the record that had it, without a DELETE. `UPDATE ... SET rowid` does not fire a trigger on UPDATE OF id. The outer
-- statement's conflict clause takes the place of every inner one, so no inner statement may meet a conflict.

CREATE TRIGGER IF NOT EXISTS memories_fts_insert AFTER INSERT ON memories BEGIN
    DELETE FROM memories_fts WHERE rowid = new.id;
    INSERT INTO memories_fts (rowid, text) SELECT id, text FROM searchable WHERE kind = 'mem' AND id = new.id;
END;
CREATE TRIGGER IF NOT EXISTS memories_fts_update AFTER UPDATE ON memories
WHEN old.id IS NOT new.id OR old.content IS NOT new.content BEGIN
    DELETE FROM memories_fts WHERE rowid IN (old.id, new.id);
    INSERT INTO memories_fts (rowid, text) SELECT id, text FROM searchable WHERE kind = 'mem' AND id = new.id;
END;
CREATE TRIGGER IF NOT EXISTS memories_fts_delete AFTER DELETE ON memories BEGIN
    DELETE FROM memories_fts WHERE rowid = old.id;
END;
CREATE TRIGGER IF NOT EXISTS episodes_fts_insert AFTER INSERT ON episodes BEGIN
    DELETE FROM episodes_fts WHERE rowid = new.id;
    INSERT INTO episodes_fts (rowid, text) SELECT id, text FROM searchable WHERE kind = 'ep' AND id = new.id;
END;
CREATE TRIGGER IF NOT EXISTS episodes_fts_update AFTER UPDATE ON episodes
WHEN old.id IS NOT new.id OR old.summary IS NOT new.summary BEGIN
    DELETE FROM episodes_fts WHERE rowid IN (old.id, new.id);
    INSERT INTO episodes_fts (rowid, text) SELECT id, text FROM searchable WHERE kind = 'ep' AND id = new.id;
END;
CREATE TRIGGER IF NOT EXISTS episodes_fts_delete AFTER DELETE ON episodes BEGIN
    DELETE FROM episodes_fts WHERE rowid = old.id;
END;

-- A replaced record that had nodes, or was to get them, is queued for new ones.
CREATE TRIGGER IF NOT EXISTS memories_nodes_insert AFTER INSERT ON memories BEGIN
    UPDATE tasks SET token_count = NULL, window = NULL, window_end_char = NULL, attempts = 0, due_at = 0,
    lease_until = NULL, lease_owner = NULL, last_error = NULL
    WHERE type = 'nodes' AND kind = 'mem' AND id = new.id;
    INSERT INTO tasks (type, kind, id) SELECT 'nodes', 'mem', new.id
    WHERE EXISTS (SELECT 1 FROM record_nodes WHERE parent_kind = 'mem' AND parent_id = new.id)
    AND NOT EXISTS (SELECT 1 FROM tasks WHERE type = 'nodes' AND kind = 'mem' AND id = new.id);
    DELETE FROM record_nodes WHERE parent_kind = 'mem' AND parent_id = new.id;
    DELETE FROM node_sets WHERE parent_kind = 'mem' AND parent_id = new.id;
    DELETE FROM failures WHERE parent_kind = 'mem' AND parent_id = new.id;
END;
CREATE TRIGGER IF NOT EXISTS memories_nodes_update AFTER UPDATE ON memories
WHEN old.id IS NOT new.id OR old.content IS NOT new.content BEGIN
    UPDATE memories SET embedding = NULL, embedding_model = NULL
    WHERE id = new.id AND old.content IS NOT new.content AND old.embedding IS new.embedding;
    DELETE FROM record_vectors WHERE parent_kind = 'mem' AND parent_id = new.id AND old.id IS NOT new.id;
    UPDATE record_vectors SET parent_id = new.id
    WHERE parent_kind = 'mem' AND parent_id = old.id AND old.id IS NOT new.id;
    DELETE FROM record_nodes WHERE parent_kind = 'mem' AND parent_id IN (old.id, new.id);
    DELETE FROM node_sets WHERE parent_kind = 'mem' AND parent_id IN (old.id, new.id);
    DELETE FROM failures WHERE parent_kind = 'mem' AND parent_id IN (old.id, new.id);
    DELETE FROM tasks WHERE type = 'nodes' AND kind = 'mem' AND id IN (old.id, new.id);
    INSERT INTO tasks (type, kind, id) VALUES ('nodes', 'mem', new.id);
END;
CREATE TRIGGER IF NOT EXISTS memories_nodes_delete AFTER DELETE ON memories BEGIN
    DELETE FROM record_nodes WHERE parent_kind = 'mem' AND parent_id = old.id;
    DELETE FROM node_sets WHERE parent_kind = 'mem' AND parent_id = old.id;
    DELETE FROM record_vectors WHERE parent_kind = 'mem' AND parent_id = old.id;
    DELETE FROM failures WHERE parent_kind = 'mem' AND parent_id = old.id;
    DELETE FROM tasks WHERE type = 'nodes' AND kind = 'mem' AND id = old.id;
END;
CREATE TRIGGER IF NOT EXISTS episodes_nodes_insert AFTER INSERT ON episodes BEGIN
    UPDATE tasks SET token_count = NULL, window = NULL, window_end_char = NULL, attempts = 0, due_at = 0,
    lease_until = NULL, lease_owner = NULL, last_error = NULL
    WHERE type = 'nodes' AND kind = 'ep' AND id = new.id;
    INSERT INTO tasks (type, kind, id) SELECT 'nodes', 'ep', new.id
    WHERE EXISTS (SELECT 1 FROM record_nodes WHERE parent_kind = 'ep' AND parent_id = new.id)
    AND NOT EXISTS (SELECT 1 FROM tasks WHERE type = 'nodes' AND kind = 'ep' AND id = new.id);
    DELETE FROM record_nodes WHERE parent_kind = 'ep' AND parent_id = new.id;
    DELETE FROM node_sets WHERE parent_kind = 'ep' AND parent_id = new.id;
    DELETE FROM failures WHERE parent_kind = 'ep' AND parent_id = new.id;
END;
CREATE TRIGGER IF NOT EXISTS episodes_nodes_update AFTER UPDATE ON episodes
WHEN old.id IS NOT new.id OR old.summary IS NOT new.summary BEGIN
    UPDATE episodes SET embedding = NULL, embedding_model = NULL
    WHERE id = new.id AND old.summary IS NOT new.summary AND old.embedding IS new.embedding;
    DELETE FROM record_vectors WHERE parent_kind = 'ep' AND parent_id = new.id AND old.id IS NOT new.id;
    UPDATE record_vectors SET parent_id = new.id
    WHERE parent_kind = 'ep' AND parent_id = old.id AND old.id IS NOT new.id;
    DELETE FROM record_nodes WHERE parent_kind = 'ep' AND parent_id IN (old.id, new.id);
    DELETE FROM node_sets WHERE parent_kind = 'ep' AND parent_id IN (old.id, new.id);
    DELETE FROM failures WHERE parent_kind = 'ep' AND parent_id IN (old.id, new.id);
    DELETE FROM tasks WHERE type = 'nodes' AND kind = 'ep' AND id IN (old.id, new.id);
    INSERT INTO tasks (type, kind, id) VALUES ('nodes', 'ep', new.id);
END;
CREATE TRIGGER IF NOT EXISTS episodes_nodes_delete AFTER DELETE ON episodes BEGIN
    DELETE FROM record_nodes WHERE parent_kind = 'ep' AND parent_id = old.id;
    DELETE FROM node_sets WHERE parent_kind = 'ep' AND parent_id = old.id;
    DELETE FROM record_vectors WHERE parent_kind = 'ep' AND parent_id = old.id;
    DELETE FROM failures WHERE parent_kind = 'ep' AND parent_id = old.id;
    DELETE FROM tasks WHERE type = 'nodes' AND kind = 'ep' AND id = old.id;
END;
