import Synchronization

/// What a session remembers of the servers and proxies that asked who is calling; its calls and views share it.
package final class AuthenticationMemory: Sendable, CustomReflectable, CustomStringConvertible {
    /// Guards the table, for the time of one look or change.
    private let table = Mutex(AuthenticationTable())

    /// A memory of nothing.
    package init() {}

    /// Looks at the table, or changes it.
    func withTable<Result>(_ body: (inout AuthenticationTable) -> sending Result) -> sending Result {
        table.withLock { body(&$0) }
    }

    /// Forgets everything.
    package func clear() {
        table.withLock { $0 = AuthenticationTable() }
    }

    /// Nothing of what it remembers.
    package var description: String { "AuthenticationMemory" }
    /// Shows nothing.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
