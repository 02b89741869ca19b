package bench

// Peers returns every contestant: floors first, then rivals, Tidemark last.
func Peers() []Peer {
	var all []Peer
	all = append(all, rawPeers()...)
	all = append(all,
		raftWALPeer(), etcdPeer(), tidwallPeer(),
		pebblePeer(), pebbleLogPeer(), bboltPeer(), badgerPeer(), sqlitePeer(), natsPeer(), wlogPeer())
	return append(all, tidemarkPeers()...)
}
