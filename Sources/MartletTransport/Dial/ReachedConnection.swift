/// A connection that stood when the dial failed: TLS on it, or the way through a proxy, came to nothing.
///
/// A class, so that errors that have none stay small.
package final class ReachedConnection: Sendable {
    /// The addresses of both ends.
    package let information: ConnectionInformation
    /// When its parts were done.
    package let timings: DialTimings

    /// A connection that was given up.
    package init(information: ConnectionInformation, timings: DialTimings) {
        self.information = information
        self.timings = timings
    }
}
