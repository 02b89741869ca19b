package bench

// Peers returns every contestant: floors first, then rivals, Tidemark last.
func Peers() []Peer {
	var all []Peer
	all = append(all, rawPeers()...)
	all = append(all, raftWALPeer(), etcdPeer(), tidwallPeer())
	return all
}
