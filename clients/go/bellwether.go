// Package bellwether does work in one process at a time, under a leadership that a bellwether process holds.
//
// Start `bellwether run ELECTION --for-clients --http unix:PATH` beside this program, and give [New] the same address.
//
// A leadership is believed in until a deadline on this machine's own boot-time clock, which goes on while the machine is suspended. The
// deadline counts from before the request whose answer named it, so it needs no other clock. docs/clients.md has the protocol.
package bellwether

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
	// How long a connection may take to open, and how much longer than promised an answer may take.
	patience = 5 * time.Second
	// CLOCK_BOOTTIME, which package syscall does not name.
	clockBoottime = 7
)

// ErrRefused says that bellwether does not let this client campaign, and that asking again would not help.
var ErrRefused = errors.New("bellwether refuses")

var errUnknown = errors.New("there is no such campaign any more")

// BootNanos reads the boot-time clock, which also counts while the machine is suspended.
func BootNanos() int64 {
	var now syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&now)), 0); errno != 0 {
		panic("no boot-time clock: " + errno.Error())
	}
	return now.Nano()
}

// Leadership is the right to work, for one epoch.
type Leadership struct {
	// Epoch is the fencing token: give it to whatever the work writes to, and let that refuse smaller ones.
	Epoch    uint64
	deadline atomic.Int64
	over     atomic.Bool
	moved    chan struct{}
}

// Holds says whether the work may go on. It reads the clock, and asks nobody. Once it has said no, it says no for ever.
func (l *Leadership) Holds() bool {
	// The work stops then: an answer that comes later must not make it look as if it had stopped by itself.
	if !l.over.Load() && BootNanos() >= l.deadline.Load() {
		l.over.Store(true)
	}
	return !l.over.Load()
}

// Deadline is the instant at which the leadership ends unless renewed, in nanoseconds of the boot-time clock.
func (l *Leadership) Deadline() int64 {
	return l.deadline.Load()
}

// cancelAtEnd calls cancel when the leadership is over.
func (l *Leadership) cancelAtEnd(ctx context.Context, cancel context.CancelFunc) {
	defer cancel()
	for l.Holds() {
		// A timer stands still while the machine is suspended, and so may fire late: Holds is never late.
		timer := time.NewTimer(time.Duration(l.deadline.Load() - BootNanos()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-l.moved:
			timer.Stop()
		case <-timer.C:
		}
	}
}

func (l *Leadership) end() {
	l.over.Store(true)
	select {
	case l.moved <- struct{}{}:
	default:
	}
}

// Campaign takes part in an election through a bellwether process.
type Campaign struct {
	url     string
	token   string
	client  *http.Client
	body    string
	current atomic.Pointer[Leadership]
}

// Option changes how a Campaign asks.
type Option func(*Campaign)

// WithToken shows the token of --http-token-file, which a network address needs.
func WithToken(token string) Option {
	return func(c *Campaign) { c.token = token }
}

// WorkOutlivesProcess says that other processes do the work, and that they may outlive this one.
func WorkOutlivesProcess() Option {
	return func(c *Campaign) { c.body = `{"ends_with_process": false}` }
}

// New makes a Campaign. The address is that of --http: unix:PATH, http://HOST:PORT or https://HOST:PORT.
func New(address string, options ...Option) (*Campaign, error) {
	dialer := &net.Dialer{Timeout: patience}
	transport := &http.Transport{DialContext: dialer.DialContext}
	c := &Campaign{url: strings.TrimSuffix(address, "/"), body: `{"ends_with_process": true}`}
	if path, isUnix := strings.CutPrefix(address, "unix:"); isUnix {
		c.url = "http://localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", path)
		}
	} else if !strings.HasPrefix(address, "http://") && !strings.HasPrefix(address, "https://") {
		return nil, fmt.Errorf("%q is no address of --http: write unix:PATH, http://HOST:PORT or https://HOST:PORT", address)
	}
	c.client = &http.Client{Transport: transport}
	for _, option := range options {
		option(c)
	}
	return c, nil
}

// IsLeader says whether this process leads. It reads the clock, and asks nobody.
func (c *Campaign) IsLeader() bool {
	leadership := c.current.Load()
	return leadership != nil && leadership.Holds()
}

// Epoch is that of the present leadership; false without one.
func (c *Campaign) Epoch() (uint64, bool) {
	leadership := c.current.Load()
	if leadership == nil || !leadership.Holds() {
		return 0, false
	}
	return leadership.Epoch, true
}

// Lead calls work with every leadership, until work returns while the leadership still holds, or ctx is done. Its context is cancelled
// when the leadership is over; work has to return soon after that, with nothing of it left: only then may the next one lead
// before the deadline.
func (c *Campaign) Lead(ctx context.Context, work func(context.Context, *Leadership) error) error {
	for {
		held, err := c.leadOnce(ctx, work)
		if held || errors.Is(err, ErrRefused) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// leadOnce is one campaign: from the first request until its work, if there was any, has stopped.
func (c *Campaign) leadOnce(ctx context.Context, work func(context.Context, *Leadership) error) (held bool, err error) {
	asking, stop := context.WithCancel(ctx)
	s := &session{campaign: c, led: make(chan *Leadership, 1), failed: make(chan error, 1), done: make(chan struct{})}
	go s.ask(asking)
	defer func() {
		// Asked until the work has stopped, even if ctx is done: a leadership that ends has to be heard of.
		stop()
		<-s.done
		if s.id != "" {
			c.sayFinished(s.id)
		}
	}()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case err := <-s.failed:
		return false, err
	case leadership := <-s.led:
		c.current.Store(leadership)
		defer c.current.Store(nil)
		during, cancel := context.WithCancel(ctx)
		defer cancel()
		go leadership.cancelAtEnd(during, cancel)
		err := work(during, leadership)
		held := leadership.Holds()
		leadership.end()
		return held, err
	}
}

// sayFinished is sent once: if it does not arrive, the leadership ends at its deadline.
func (c *Campaign) sayFinished(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if answer, err := c.send(ctx, http.MethodDelete, "/campaign/"+id, ""); err == nil {
		answer.Body.Close()
	}
}

func (c *Campaign) send(ctx context.Context, method, path, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.client.Do(request)
	if err != nil || answer.StatusCode == http.StatusOK {
		return answer, err
	}
	said, _ := io.ReadAll(io.LimitReader(answer.Body, 4096))
	answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusNotFound:
		return nil, errUnknown
	case 400, 401, 403, 405, 409:
		return nil, fmt.Errorf("%w: %s", ErrRefused, bytes.TrimSpace(said))
	}
	return nil, fmt.Errorf("bellwether answers %d: %s", answer.StatusCode, bytes.TrimSpace(said))
}

// session asks in the name of one campaign.
type session struct {
	campaign   *Campaign
	id         string
	leadership *Leadership
	led        chan *Leadership
	failed     chan error
	done       chan struct{}
	patience   time.Duration
}

type line struct {
	Campaign string `json:"campaign"`
	Epoch    uint64 `json:"epoch"`
	ValidMs  int64  `json:"valid_ms"`
	AgainMs  int64  `json:"again_ms"`
	Ended    string `json:"ended"`
}

// ask asks again and again, until ctx is done.
func (s *session) ask(ctx context.Context) {
	defer close(s.done)
	s.patience = patience
	pause := firstPause
	for ctx.Err() == nil {
		err := s.askOnce(ctx)
		switch {
		case err == nil:
			pause = firstPause
			continue
		case errors.Is(err, ErrRefused):
			s.failed <- err
			return
		case errors.Is(err, errUnknown) && s.leadership == nil:
			// It was given up while it waited: it begins anew.
			s.id = ""
		case errors.Is(err, errUnknown):
			s.leadership.end()
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(pause*2, longestPause)
	}
}

func (s *session) askOnce(ctx context.Context) error {
	path, body := "/campaign", s.campaign.body
	if s.id != "" {
		path, body = path+"/"+s.id, ""
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// An answer that never ends would keep this from asking again.
	late := time.AfterFunc(s.patience, cancel)
	defer late.Stop()
	// Before the request: what the answer says counts from when the server had received it.
	asked := BootNanos()
	answer, err := s.campaign.send(ctx, http.MethodPost, path, body)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		var said line
		if err := json.Unmarshal(lines.Bytes(), &said); err != nil {
			return err
		}
		s.hear(said, asked)
	}
	return lines.Err()
}

func (s *session) hear(said line, asked int64) {
	s.id = said.Campaign
	s.patience = patience + time.Duration(said.AgainMs)*time.Millisecond
	switch {
	case said.Ended != "":
		if s.leadership != nil {
			s.leadership.end()
		}
	case said.ValidMs > 0:
		isNew := s.leadership == nil
		if isNew {
			s.leadership = &Leadership{Epoch: said.Epoch, moved: make(chan struct{}, 1)}
		}
		until := asked + said.ValidMs*int64(time.Millisecond)
		s.leadership.deadline.Store(max(until, s.leadership.deadline.Load()))
		if isNew {
			s.led <- s.leadership
		}
	}
}
