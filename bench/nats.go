package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

func natsPeer() Peer {
	return Peer{
		Name: "NATS JetStream", Kind: Rival, Module: "github.com/nats-io/nats-server/v2", Open: openNATS,
		Traits: Traits{
			Sums: SumsVerified, Atomic: true, Index: true, Reads: ReadsCache, Reopens: true,
			Note: "a server in the same process, spoken to through its client; opening starts the server",
		},
	}
}

const (
	natsStream   = "log"
	natsPatience = 30 * time.Second // to start, to acknowledge, to stop
	natsPending  = 4096             // deferred records not yet acknowledged
)

// natsLog is one stream; its sequence numbers start at 1.
type natsLog struct {
	server *server.Server
	conn   *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
	dir    string
	mode   Mode
	count  atomic.Uint64
}

func openNATS(o Options) (Store, error) {
	srv, err := server.NewServer(&server.Options{
		DontListen: true, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: o.Dir, SyncAlways: o.Mode == Durable,
	})
	if err != nil {
		return nil, err
	}
	p := &natsLog{server: srv, dir: o.Dir, mode: o.Mode}
	srv.Start()
	if err := p.connect(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// connect makes or finds the stream.
func (p *natsLog) connect() error {
	if !p.server.ReadyForConnections(natsPatience) {
		return errors.New("nats server did not start")
	}
	var err error
	if p.conn, err = nats.Connect("", nats.InProcessServer(p.server)); err != nil {
		return err
	}
	if p.js, err = jetstream.New(p.conn, jetstream.WithPublishAsyncMaxPending(natsPending)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), natsPatience)
	defer cancel()
	p.stream, err = p.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: natsStream, Subjects: []string{natsStream}, Storage: jetstream.FileStorage,
		AllowAtomicPublish: true, AllowDirect: true,
	})
	if err != nil {
		return err
	}
	p.count.Store(p.stream.CachedInfo().State.LastSeq)
	return nil
}

func (p *natsLog) Commit(group [][]byte) error {
	var err error
	switch {
	case p.mode == Deferred:
		err = p.send(group)
	case len(group) == 1:
		_, err = p.js.Publish(context.Background(), natsStream, group[0])
	default:
		err = p.publishBatch(group)
	}
	if err == nil {
		p.count.Add(uint64(len(group)))
	}
	return err
}

// send publishes without waiting; Sync waits.
func (p *natsLog) send(group [][]byte) error {
	for _, record := range group {
		if _, err := p.js.PublishAsync(natsStream, record); err != nil {
			return err
		}
	}
	return nil
}

// publishBatch publishes a group that takes effect as a whole: only its last
// message is answered.
func (p *natsLog) publishBatch(group [][]byte) error {
	id := nuid.Next()
	for i, record := range group {
		msg := nats.NewMsg(natsStream)
		msg.Data = record
		msg.Header.Set(server.JSBatchId, id)
		msg.Header.Set(server.JSBatchSeq, strconv.Itoa(i+1))
		if i < len(group)-1 {
			if err := p.conn.PublishMsg(msg); err != nil {
				return err
			}
			continue
		}
		msg.Header.Set(server.JSBatchCommit, "1")
		reply, err := p.conn.RequestMsg(msg, natsPatience)
		if err != nil {
			return err
		}
		return natsError(reply.Data)
	}
	return nil
}

// natsError returns the error in the server's answer to a batch, if any.
func natsError(reply []byte) error {
	var ack server.JSPubAckResponse
	if err := json.Unmarshal(reply, &ack); err != nil {
		return fmt.Errorf("answer to a batch: %w", err)
	}
	if ack.Error != nil {
		return ack.Error
	}
	return nil
}

func (p *natsLog) Sync() error {
	select {
	case <-p.js.PublishAsyncComplete():
	case <-time.After(natsPatience):
		return errors.New("nats server did not acknowledge")
	}
	return syncTree(p.dir)
}

// Replay reads through a consumer, which the server feeds ahead.
func (p *natsLog) Replay(visit func(record []byte)) error {
	consumer, err := p.stream.OrderedConsumer(context.Background(), jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(natsPending))
	if err != nil {
		return err
	}
	defer messages.Stop()
	for range p.count.Load() {
		msg, err := messages.Next(jetstream.NextMaxWait(natsPatience))
		if err != nil {
			return err
		}
		visit(msg.Data())
	}
	return nil
}

func (p *natsLog) ReadAt(n uint64, _ []byte) ([]byte, error) {
	msg, err := p.stream.GetMsg(context.Background(), n+1)
	if err != nil {
		return nil, err
	}
	return msg.Data, nil
}

func (p *natsLog) Len() uint64 { return p.count.Load() }

func (p *natsLog) Close() error {
	if p.conn != nil {
		p.conn.Close()
	}
	p.server.Shutdown()
	p.server.WaitForShutdown()
	return nil
}
