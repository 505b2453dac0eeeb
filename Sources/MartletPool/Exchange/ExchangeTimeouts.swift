package import MartletTransport

/// The timeouts of an exchange, as instants and durations.
package struct ExchangeTimeouts: Sendable {
    /// The maximum time from the sent request to the final head; `nil` for no limit.
    package var head: Duration?
    /// The maximum time without a transferred byte in either direction; `nil` for no limit.
    package var idle: Duration?
    /// The end of the whole call.
    package var totalDeadline: MonotonicTime

    package init(head: Duration? = nil, idle: Duration? = nil, totalDeadline: MonotonicTime = .distantFuture) {
        (self.head, self.idle, self.totalDeadline) = (head, idle, totalDeadline)
    }

    /// The deadline of a wait that starts now, and the timeout that ends it.
    func deadline(_ span: Duration?, _ timeout: ExchangeError.Timeout, from now: MonotonicTime = .now())
        -> (MonotonicTime, ExchangeError.Timeout)
    {
        guard let span else { return (totalDeadline, .total) }
        let instant = now.advanced(by: span)
        return instant < totalDeadline ? (instant, timeout) : (totalDeadline, .total)
    }
}
