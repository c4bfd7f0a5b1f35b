-- What there is of memories and of episodes alike, run once for each: {table} is its name, {text} the column of its text,
-- {kind} what nodes call it. Overflow Tree, section 4. Every statement may run on a database that has the object already.

CREATE TABLE IF NOT EXISTS {table} (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    agent           TEXT    NOT NULL DEFAULT '',
    project         TEXT    NOT NULL DEFAULT '',
    channel         TEXT    NOT NULL DEFAULT '',
    {text}          TEXT    NOT NULL,
    locked          INTEGER NOT NULL DEFAULT 0,
    created_at      REAL    NOT NULL DEFAULT 0,   -- seconds
    updated_at      REAL    NOT NULL DEFAULT 0,
    embedding       BLOB,                         -- the record's own vector, little-endian float32
    embedding_model TEXT
);
CREATE INDEX IF NOT EXISTS {table}_scope ON {table} (agent, project, channel);

-- With content of their own: REPLACE INTO deletes no row of an external-content index, and so corrupts it. Trigrams,
-- because Japanese and Chinese have no spaces between words.
CREATE VIRTUAL TABLE IF NOT EXISTS {table}_fts USING fts5 (text, tokenize = 'trigram');

-- Traps the triggers avoid. REPLACE INTO comes as an INSERT alone, without a DELETE. UPDATE OR REPLACE of an id removes
-- the record that had it, without a DELETE. `UPDATE ... SET rowid` does not fire a trigger on UPDATE OF id. The outer
-- statement's conflict clause takes the place of every inner one, so no inner statement may meet a conflict.

CREATE TRIGGER IF NOT EXISTS {table}_fts_insert AFTER INSERT ON {table} BEGIN
    DELETE FROM {table}_fts WHERE rowid = new.id;
    INSERT INTO {table}_fts (rowid, text) SELECT id, text FROM searchable WHERE kind = '{kind}' AND id = new.id;
END;
CREATE TRIGGER IF NOT EXISTS {table}_fts_update AFTER UPDATE ON {table}
WHEN old.id IS NOT new.id OR old.{text} IS NOT new.{text} BEGIN
    DELETE FROM {table}_fts WHERE rowid IN (old.id, new.id);
    INSERT INTO {table}_fts (rowid, text) SELECT id, text FROM searchable WHERE kind = '{kind}' AND id = new.id;
END;
CREATE TRIGGER IF NOT EXISTS {table}_fts_delete AFTER DELETE ON {table} BEGIN
    DELETE FROM {table}_fts WHERE rowid = old.id;
END;

-- A replaced record that had nodes, or was to get them, is queued for new ones.
CREATE TRIGGER IF NOT EXISTS {table}_nodes_insert AFTER INSERT ON {table} BEGIN
    UPDATE tasks SET token_count = NULL, window = NULL, window_end_char = NULL, attempts = 0, due_at = 0,
    lease_until = NULL, lease_owner = NULL, last_error = NULL
    WHERE type = 'nodes' AND kind = '{kind}' AND id = new.id;
    INSERT INTO tasks (type, kind, id) SELECT 'nodes', '{kind}', new.id
    WHERE EXISTS (SELECT 1 FROM record_nodes WHERE parent_kind = '{kind}' AND parent_id = new.id)
    AND NOT EXISTS (SELECT 1 FROM tasks WHERE type = 'nodes' AND kind = '{kind}' AND id = new.id);
    DELETE FROM record_nodes WHERE parent_kind = '{kind}' AND parent_id = new.id;
    DELETE FROM node_sets WHERE parent_kind = '{kind}' AND parent_id = new.id;
    DELETE FROM failures WHERE parent_kind = '{kind}' AND parent_id = new.id;
END;
CREATE TRIGGER IF NOT EXISTS {table}_nodes_update AFTER UPDATE ON {table}
WHEN old.id IS NOT new.id OR old.{text} IS NOT new.{text} BEGIN
    UPDATE {table} SET embedding = NULL, embedding_model = NULL
    WHERE id = new.id AND old.{text} IS NOT new.{text} AND old.embedding IS new.embedding;
    DELETE FROM record_vectors WHERE parent_kind = '{kind}' AND parent_id = new.id AND old.id IS NOT new.id;
    UPDATE record_vectors SET parent_id = new.id
    WHERE parent_kind = '{kind}' AND parent_id = old.id AND old.id IS NOT new.id;
    DELETE FROM record_nodes WHERE parent_kind = '{kind}' AND parent_id IN (old.id, new.id);
    DELETE FROM node_sets WHERE parent_kind = '{kind}' AND parent_id IN (old.id, new.id);
    DELETE FROM failures WHERE parent_kind = '{kind}' AND parent_id IN (old.id, new.id);
    DELETE FROM tasks WHERE type = 'nodes' AND kind = '{kind}' AND id IN (old.id, new.id);
    INSERT INTO tasks (type, kind, id) VALUES ('nodes', '{kind}', new.id);
END;
CREATE TRIGGER IF NOT EXISTS {table}_nodes_delete AFTER DELETE ON {table} BEGIN
    DELETE FROM record_nodes WHERE parent_kind = '{kind}' AND parent_id = old.id;
    DELETE FROM node_sets WHERE parent_kind = '{kind}' AND parent_id = old.id;
    DELETE FROM record_vectors WHERE parent_kind = '{kind}' AND parent_id = old.id;
    DELETE FROM failures WHERE parent_kind = '{kind}' AND parent_id = old.id;
    DELETE FROM tasks WHERE type = 'nodes' AND kind = '{kind}' AND id = old.id;
END;
