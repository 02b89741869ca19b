package bench

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync"

	_ "github.com/mattn/go-sqlite3" // the driver
)

func sqlitePeer() Peer {
	return Peer{
		Name: "SQLite", Kind: Rival, Module: "github.com/mattn/go-sqlite3", Light: true, Open: openSQLite,
		Traits: Traits{
			Sums: SumsWritten, Atomic: true, Index: true, Reads: ReadsCache, Reopens: true,
			Note: "a database in WAL mode, synchronous=FULL: sums its log, not its pages; copies the log into the file every 4 MB",
		},
	}
}

// sqliteDB keeps record n in row n+1 of one table, through one connection.
type sqliteDB struct {
	db   *sql.DB
	conn *sql.Conn
	dir  string

	mu                         sync.Mutex // the connection serves one caller at a time
	begin, insert, get, commit *sql.Stmt
	count                      uint64
}

func openSQLite(o Options) (Store, error) {
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(o.Dir, "log.db"))
	if err != nil {
		return nil, err
	}
	p := &sqliteDB{db: db, dir: o.Dir}
	if err := p.prepare(context.Background(), o.Mode); err != nil {
		return nil, closeWith(err, p)
	}
	return p, nil
}

// prepare sets the connection up and finds the end of the table.
func (p *sqliteDB) prepare(ctx context.Context, mode Mode) error {
	var err error
	if p.conn, err = p.db.Conn(ctx); err != nil {
		return err
	}
	synchronous := "FULL"
	if mode == Deferred {
		synchronous = "OFF"
	}
	for _, query := range []string{
		"PRAGMA journal_mode=WAL",
		"PRAGMA synchronous=" + synchronous,
		"CREATE TABLE IF NOT EXISTS log(id INTEGER PRIMARY KEY, data BLOB)",
	} {
		if _, err := p.conn.ExecContext(ctx, query); err != nil {
			return err
		}
	}
	for query, to := range map[string]**sql.Stmt{
		"BEGIN IMMEDIATE":                 &p.begin,
		"INSERT INTO log(data) VALUES(?)": &p.insert,
		"SELECT data FROM log WHERE id=?": &p.get,
		"COMMIT":                          &p.commit,
	} {
		if *to, err = p.conn.PrepareContext(ctx, query); err != nil {
			return err
		}
	}
	return p.conn.QueryRowContext(ctx, "SELECT coalesce(max(id), 0) FROM log").Scan(&p.count)
}

func (p *sqliteDB) Commit(group [][]byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	if len(group) == 1 {
		_, err = p.insert.Exec(group[0])
	} else {
		err = p.transaction(group)
	}
	if err == nil {
		p.count += uint64(len(group))
	}
	return err
}

func (p *sqliteDB) transaction(group [][]byte) error {
	if _, err := p.begin.Exec(); err != nil {
		return err
	}
	for _, record := range group {
		if _, err := p.insert.Exec(record); err != nil {
			return err
		}
	}
	_, err := p.commit.Exec()
	return err
}

func (p *sqliteDB) Sync() error { return syncTree(p.dir) }

func (p *sqliteDB) Replay(visit func(record []byte)) error {
	rows, err := p.conn.QueryContext(context.Background(), "SELECT data FROM log ORDER BY id")
	if err != nil {
		return err
	}
	defer rows.Close()
	var record sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&record); err != nil {
			return err
		}
		visit(record)
	}
	return rows.Err()
}

func (p *sqliteDB) ReadAt(n uint64, _ []byte) ([]byte, error) {
	var record []byte
	err := p.get.QueryRow(int64(n) + 1).Scan(&record)
	return record, err
}

func (p *sqliteDB) Len() uint64 { return p.count }

func (p *sqliteDB) Close() error {
	var err error
	for _, s := range []*sql.Stmt{p.begin, p.insert, p.get, p.commit} {
		if s != nil {
			err = closeWith(err, s)
		}
	}
	if p.conn != nil {
		err = closeWith(err, p.conn)
	}
	return closeWith(err, p.db)
}
