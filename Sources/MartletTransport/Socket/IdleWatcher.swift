/// Who is told when something happens on a stream that nobody uses.
package protocol IdleWatcher: AnyObject, Sendable {
    /// Something has come, or the peer has left. Called on the loop's thread, or by whoever sets the watch.
    func idleStreamStirred()
}

/// A watcher that calls a closure.
final class IdleClosure: IdleWatcher {
    private let closure: @Sendable () -> Void

    init(_ closure: @escaping @Sendable () -> Void) {
        self.closure = closure
    }

    func idleStreamStirred() {
        closure()
    }
}
