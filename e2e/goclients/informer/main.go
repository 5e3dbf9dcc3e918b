// An informer of client-go with default features. It must be in sync within a second, see every one of 10 000 random writes exactly
// once, and recover when its watch has expired. The test beside it speaks by lines: "ready" comes from here, "expired" goes in.
package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	namespace = "informer"
	writers   = 16
	names     = 30
	writes    = 10_000
	before    = 300
)

// book counts what the informer has told.
type book struct {
	sync.Mutex
	revisions map[string]int
	deleted   int
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println("done")
}

func run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil {
		return err
	}
	maps := client.CoreV1().ConfigMaps(namespace)
	for i := range before {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("before-%d", i)}}
		if _, err := maps.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}

	seen := &book{revisions: map[string]int{}}
	informer := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace)).
		Core().V1().ConfigMaps().Informer()
	note := func(object any) {
		seen.Lock()
		defer seen.Unlock()
		seen.revisions[object.(*corev1.ConfigMap).ResourceVersion]++
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    note,
		UpdateFunc: func(_, object any) { note(object) },
		DeleteFunc: func(any) { seen.Lock(); seen.deleted++; seen.Unlock() },
	})
	if err != nil {
		return err
	}
	started := time.Now()
	go informer.Run(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("not in sync")
	}
	took := time.Since(started)
	fmt.Printf("in sync with %d objects after %d ms\n", len(informer.GetStore().ListKeys()), took.Milliseconds())
	if took > time.Second || len(informer.GetStore().ListKeys()) < before {
		return fmt.Errorf("in sync too late, or with too little")
	}

	started = time.Now()
	written, deleted, err := write(ctx, client)
	if err != nil {
		return err
	}
	rate := float64(writes) / time.Since(started).Seconds()
	if err := seen.wait(written, deleted); err != nil {
		return err
	}
	fmt.Printf("%d writes, %d of them deletions, each seen once; %.0f writes/s\n", writes, deleted, rate)

	fmt.Println("ready")
	if line, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil || line != "expired\n" {
		return fmt.Errorf("told %q: %v", line, err)
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "after"}}
	if _, err := maps.Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return err
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		if _, there, _ := informer.GetStore().GetByKey(namespace + "/after"); there {
			fmt.Println("recovered")
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not recovered after 30 s")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// write makes random writes: each writer creates, changes and deletes objects of its own. It returns all revisions and counts deletions.
func write(ctx context.Context, client kubernetes.Interface) ([]string, int, error) {
	var (
		all     sync.WaitGroup
		lock    sync.Mutex
		written []string
		deleted int
		failed  error
	)
	for writer := range writers {
		all.Add(1)
		go func() {
			defer all.Done()
			random := rand.New(rand.NewSource(int64(writer)))
			maps := client.CoreV1().ConfigMaps(namespace)
			mine := map[string]*corev1.ConfigMap{}
			for i := range writes / writers {
				name := fmt.Sprintf("w%d-%d", writer, random.Intn(names))
				object, there := mine[name]
				var err error
				switch {
				case !there:
					object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"n": fmt.Sprint(i)}}
					object, err = maps.Create(ctx, object, metav1.CreateOptions{})
				case random.Intn(4) == 0:
					err = maps.Delete(ctx, name, metav1.DeleteOptions{})
					object = nil
				default:
					object = object.DeepCopy()
					object.Data["n"] = fmt.Sprint(i)
					object, err = maps.Update(ctx, object, metav1.UpdateOptions{})
				}
				lock.Lock()
				if err != nil {
					failed = err
				} else if object == nil {
					deleted++
				} else {
					written = append(written, object.ResourceVersion)
				}
				lock.Unlock()
				if err != nil {
					return
				}
				if object == nil {
					delete(mine, name)
				} else {
					mine[name] = object
				}
			}
		}()
	}
	all.Wait()
	return written, deleted, failed
}

// wait returns when every revision was told once and every deletion was.
func (b *book) wait(written []string, deleted int) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		missing, twice := 0, 0
		b.Lock()
		for _, revision := range written {
			switch count := b.revisions[revision]; {
			case count == 0:
				missing++
			case count > 1:
				twice++
			}
		}
		gone := b.deleted
		b.Unlock()
		if missing == 0 && twice == 0 && gone == deleted {
			return nil
		}
		if twice > 0 || time.Now().After(deadline) {
			return fmt.Errorf("%d writes not seen, %d seen twice, %d of %d deletions seen", missing, twice, gone, deleted)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
