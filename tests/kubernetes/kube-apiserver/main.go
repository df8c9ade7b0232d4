// kube-apiserver as Kubernetes releases it, built from source for the tests.
//
// The version is that of k8s.io/kubernetes in go.mod; `cargo xtask` builds it once and keeps it outside of every checkout.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
