/// How it is found out whether a host can be reached.
public enum ReachabilityProbe: Hashable, Sendable {
    /// Its name is looked up and the kernel asked for a route; nothing is sent to the host.
    ///
    /// It tells that a way begins, and not where it ends.
    case route
    /// Besides, a connection is made to its port and closed; TLS is not spoken.
    case connection
}
