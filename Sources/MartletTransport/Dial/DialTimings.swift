/// When the steps of opening a connection began and ended.
package struct DialTimings: Sendable {
    /// When the dial began.
    package var start: MonotonicTime
    /// When the name was resolved; `nil` where there was nothing to resolve.
    package var resolved: MonotonicTime?
    /// When the transport's connection stood.
    package var connected: MonotonicTime?
    /// When the tunnel through a proxy stood; `nil` where there is none.
    package var tunnelled: MonotonicTime?
    /// When the TLS handshake was done; `nil` on a plain connection.
    package var secured: MonotonicTime?

    /// Timings that begin now.
    package init(start: MonotonicTime) {
        self.start = start
    }
}
