// Package candidate is what the candidates of other makes share: their flags, the lines that they print, and how a process holds any number
// of them. A program gives it the library, and has no measure of its own.
//
//	PROGRAM prepare FLAGS             makes what the store needs once: a table, a bucket
//	PROGRAM compete FLAGS             candidates, until SIGTERM; then they give back what they lead
//	PROGRAM acquire FLAGS             leads one free election after the other, on a connection that is open
//	PROGRAM is-leader FLAGS           leads, and measures the call that tells so
//	PROGRAM --version                 which library this is
//
// Each line on stdout is one event: `campaigning` (all candidates compete), `started_leading` and `stopped_leading` (of one candidate in one
// election), `stopping` (SIGTERM came), `called` (nanoseconds of one call), `ended`.
package candidate

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Library is how one make holds elections.
type Library struct {
	// Name is what a reader calls it, and Module where its version is told.
	Name, Module string
	// Prepare makes what the store needs before any candidate.
	Prepare func(ctx context.Context, flags *Flags) error
	// Connect opens a connection of its own, as another process would have.
	Connect func(ctx context.Context, flags *Flags) (Connection, error)
}

// Connection is what the candidates of one process share.
type Connection interface {
	// Campaign competes until the context ends, gives back what it leads, and returns.
	Campaign(ctx context.Context, candidate Candidate) error
}

// Candidate is one in one election, and hears what becomes of it.
type Candidate struct {
	Election, ID string
	// Leads is called when a leadership begins, with the call that tells whether it lasts; nil where the library has none.
	Leads func(isLeader func() bool)
	// Stopped is called when it is over.
	Stopped func()
}

// Flags are those of every program. A time that is zero is the library's own default.
type Flags struct {
	URL, Election, ID     string
	TTL, Renew            time.Duration
	Candidates, Elections int
	Rounds                int
}

// Run is the whole program.
func Run(library Library) {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Println(library.Name, version(library.Module))
		return
	}
	if len(os.Args) < 2 {
		check(fmt.Errorf("what to do is the first argument"))
	}
	flags := parse(os.Args[2:])
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	switch os.Args[1] {
	case "prepare":
		check(library.Prepare(ctx, flags))
	case "compete":
		compete(ctx, library, flags)
	case "acquire":
		acquire(ctx, library, flags)
	case "is-leader":
		isLeader(ctx, library, flags)
	default:
		check(fmt.Errorf("there is no `%s`", os.Args[1]))
	}
	say("ended", nil)
}

func parse(args []string) *Flags {
	set := flag.NewFlagSet("candidate", flag.ExitOnError)
	flags := &Flags{}
	set.StringVar(&flags.URL, "url", "", "the server")
	set.StringVar(&flags.Election, "election", "job", "the election; with many, what their names begin with")
	set.StringVar(&flags.ID, "id", "a", "what the ids of the candidates begin with")
	set.DurationVar(&flags.TTL, "ttl", 0, "how long a leader that is silent is believed in")
	set.DurationVar(&flags.Renew, "renew", 0, "how often a leader renews")
	set.IntVar(&flags.Candidates, "candidates", 1, "how many compete in each election, each on a connection of its own (compete)")
	set.IntVar(&flags.Elections, "elections", 1, "in how many elections each competes, on one connection (compete)")
	set.IntVar(&flags.Rounds, "rounds", 1, "how often (acquire, is-leader)")
	check(set.Parse(args))
	return flags
}

func compete(ctx context.Context, library Library, flags *Flags) {
	var campaigns sync.WaitGroup
	for number := range flags.Candidates {
		connection, err := library.Connect(ctx, flags)
		check(err)
		for election := range flags.Elections {
			name := flags.Election
			if flags.Elections > 1 {
				name = fmt.Sprintf("%s_%d", flags.Election, election)
			}
			one := heard(name, fmt.Sprintf("%s-%d", flags.ID, number), nil)
			campaigns.Go(func() { check(connection.Campaign(ctx, one)) })
		}
	}
	say("campaigning", nil)
	<-ctx.Done()
	say("stopping", nil)
	campaigns.Wait()
}

// acquire leads in elections that nobody else stands in. The first opens what opens late; whoever measures leaves it out.
func acquire(ctx context.Context, library Library, flags *Flags) {
	connection, err := library.Connect(ctx, flags)
	check(err)
	for round := range flags.Rounds + 1 {
		leads := make(chan func() bool, 1)
		one := heard(fmt.Sprintf("%s_%d", flags.Election, round), flags.ID, leads)
		term, end := context.WithCancel(ctx)
		ended := make(chan error, 1)
		say("campaigning", map[string]any{"election": one.Election})
		go func() { ended <- connection.Campaign(term, one) }()
		<-leads
		end()
		check(<-ended)
	}
}

func isLeader(ctx context.Context, library Library, flags *Flags) {
	const batch = 1_000_000
	connection, err := library.Connect(ctx, flags)
	check(err)
	leads := make(chan func() bool, 1)
	term, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- connection.Campaign(term, heard(flags.Election, flags.ID, leads)) }()
	isLeader := <-leads
	if isLeader == nil {
		check(fmt.Errorf("%s has no such call", library.Name))
	}
	for range flags.Rounds {
		start := bootNow()
		for range batch {
			if !isLeader() {
				check(fmt.Errorf("the leadership was lost"))
			}
		}
		say("called", map[string]any{"nanos": float64(bootNow()-start) / batch})
	}
	end()
	check(<-ended)
}

// heard is a candidate whose leaderships are printed, and told to whoever waits for them.
func heard(election, id string, leads chan<- func() bool) Candidate {
	place := map[string]any{"election": election, "id": id}
	return Candidate{
		Election: election,
		ID:       id,
		Leads: func(isLeader func() bool) {
			say("started_leading", place)
			if leads != nil {
				leads <- isLeader
			}
		},
		Stopped: func() { say("stopped_leading", place) },
	}
}
