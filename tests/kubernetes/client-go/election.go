package main

import (
	"flag"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// store is where elections are held, with a count of what is asked of it.
type store struct {
	kubeconfig string
	namespace  string
	requests   atomic.Int64
}

func storeFlags(flags *flag.FlagSet) *store {
	store := &store{}
	flags.StringVar(&store.kubeconfig, "kubeconfig", "", "the kubeconfig file")
	flags.StringVar(&store.namespace, "namespace", "default", "the namespace of the Lease")
	return store
}

// connect makes clients with connections of their own, as another process would have.
func (store *store) connect() kubernetes.Interface {
	config, err := clientcmd.BuildConfigFromFlags("", store.kubeconfig)
	check(err)
	// No limit of the client's own: what is measured is the election.
	config.QPS = -1
	// Two clients of equal settings would share connections; the proxy function makes them differ, and decides as the default.
	config.Proxy = func(request *http.Request) (*url.URL, error) { return http.ProxyFromEnvironment(request) }
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return counter{inner, &store.requests} })
	clients, err := kubernetes.NewForConfig(config)
	check(err)
	return clients
}

type counter struct {
	inner    http.RoundTripper
	requests *atomic.Int64
}

func (counter counter) RoundTrip(request *http.Request) (*http.Response, error) {
	counter.requests.Add(1)
	return counter.inner.RoundTrip(request)
}

type timing struct {
	leaseDuration, renewDeadline, retryPeriod time.Duration
	releaseOnCancel                           bool
}

// timingFlags has the defaults that client-go's documentation gives.
func timingFlags(flags *flag.FlagSet) *timing {
	timing := &timing{}
	flags.DurationVar(&timing.leaseDuration, "lease-duration", 15*time.Second, "LeaseDuration")
	flags.DurationVar(&timing.renewDeadline, "renew-deadline", 10*time.Second, "RenewDeadline")
	flags.DurationVar(&timing.retryPeriod, "retry-period", 2*time.Second, "RetryPeriod")
	flags.BoolVar(&timing.releaseOnCancel, "release-on-cancel", false, "ReleaseOnCancel")
	return timing
}

func (timing *timing) elector(
	clients kubernetes.Interface, namespace, name, id string, callbacks leaderelection.LeaderCallbacks,
) *leaderelection.LeaderElector {
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name},
			Client:     clients.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: id},
		},
		LeaseDuration:   timing.leaseDuration,
		RenewDeadline:   timing.renewDeadline,
		RetryPeriod:     timing.retryPeriod,
		ReleaseOnCancel: timing.releaseOnCancel,
		Callbacks:       callbacks,
	})
	check(err)
	return elector
}
