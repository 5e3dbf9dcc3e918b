// What controllers do with client-go and controller-runtime, one piece at a time: `clients NAME` plays one of them against the server in
// KUBECONFIG. Each says "done" at the end. They share one program, because linking is the longest part of building it.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// patience is how long anything may take on a busy machine.
const patience = time.Minute

// parts are all that can be played.
var parts = map[string]func(context.Context, *rest.Config) error{
	"apply":       apply,
	"discovery":   discover,
	"dynamic":     dynamicInformers,
	"impersonate": impersonate,
	"leader":      leader,
	"manager":     manager,
	"mapper":      mapper,
	"typed":       typedInformers,
	"webhooks":    webhooks,
}

func main() {
	names := make([]string, 0, len(parts))
	for name := range parts {
		names = append(names, name)
	}
	sort.Strings(names)
	if len(os.Args) != 2 || parts[os.Args[1]] == nil {
		fmt.Println("give one of:", strings.Join(names, " "))
		os.Exit(2)
	}
	ctrl.SetLogger(klog.Background())
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err == nil {
		config.QPS = -1
		err = parts[os.Args[1]](context.Background(), config)
	}
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println("done")
}

// until asks until the answer is yes, and says what was missing if it never is.
func until(ctx context.Context, what string, ask func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	last := error(nil)
	for {
		yes, err := ask(ctx)
		if yes && err == nil {
			return nil
		}
		if err != nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %s, last error: %v", what, patience, last)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// named is metadata with a name that nobody else uses.
func named(prefix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: prefix + "-" + rand.String(6)}
}

func expect[T comparable](what string, got, wanted T) error {
	if got != wanted {
		return fmt.Errorf("%s is %v, not %v", what, got, wanted)
	}
	return nil
}
