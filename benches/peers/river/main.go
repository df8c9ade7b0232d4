// Candidates made of River's leadership, as it is published: every client that works jobs elects one of them in a table of PostgreSQL. The
// election cannot be had alone, and its timing cannot be set: ttl 15 s, renewed every 5 s. An election of this program is a schema.
//
// A client tells nobody that it leads but its log, at level debug; that is listened to here.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"bellwether.test/candidate"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

func main() {
	candidate.Run(candidate.Library{
		Name:    "River",
		Module:  "github.com/riverqueue/river",
		Prepare: prepare,
		Connect: func(ctx context.Context, flags *candidate.Flags) (candidate.Connection, error) {
			if flags.TTL > 0 || flags.Renew > 0 {
				return nil, errors.New("the timing of River's leadership cannot be set")
			}
			pool, err := pgxpool.New(ctx, flags.URL)
			return connection{pool}, err
		},
	})
}

// prepare makes schemas with River's tables: that of the election, and one for each round.
func prepare(ctx context.Context, flags *candidate.Flags) error {
	pool, err := pgxpool.New(ctx, flags.URL)
	if err != nil {
		return err
	}
	defer pool.Close()
	names := []string{flags.Election}
	for round := range flags.Rounds + 1 {
		names = append(names, fmt.Sprintf("%s_%d", flags.Election, round))
	}
	for _, name := range names {
		if _, err := pool.Exec(ctx, "CREATE SCHEMA "+name); err != nil {
			return err
		}
		quiet := slog.New(slog.DiscardHandler)
		migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: name, Logger: quiet})
		if err != nil {
			return err
		}
		if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
			return err
		}
	}
	return nil
}

type connection struct{ pool *pgxpool.Pool }

func (connection connection) Campaign(ctx context.Context, candidate candidate.Candidate) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, &nothing{})
	client, err := river.NewClient(riverpgxv5.New(connection.pool), &river.Config{
		ID:      candidate.ID,
		Schema:  candidate.Election,
		Logger:  slog.New(listener{candidate: candidate}),
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}},
		Workers: workers,
	})
	if err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	<-ctx.Done()
	return client.Stop(context.Background())
}

// listener hears in the log what becomes of a candidate.
type listener struct {
	slog.Handler
	candidate candidate.Candidate
}

func (listener) Enabled(_ context.Context, _ slog.Level) bool { return true }

func (listener listener) Handle(_ context.Context, record slog.Record) error {
	switch {
	case strings.HasSuffix(record.Message, ": Gained leadership"):
		listener.candidate.Leads(nil)
	case strings.HasSuffix(record.Message, ": Resigned leadership successfully"):
		listener.candidate.Stopped()
	}
	return nil
}

func (listener listener) WithAttrs([]slog.Attr) slog.Handler { return listener }

func (listener listener) WithGroup(string) slog.Handler { return listener }

// nothing is a job that nobody inserts: a client that works none takes part in no election.
type nothing struct {
	river.WorkerDefaults[noArgs]
}

type noArgs struct{}

func (noArgs) Kind() string { return "nothing" }

func (*nothing) Work(context.Context, *river.Job[noArgs]) error { return nil }
