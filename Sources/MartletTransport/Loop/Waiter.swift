/// The continuation a waiting task is resumed through, exactly once.
///
/// Debug builds, which the tests run, use the checked one, so that a continuation resumed twice or lost is seen; release
/// builds use the unchecked one, which spares an allocation for every wait.
@safe @usableFromInline
package struct Waiter<Value: Sendable>: Sendable {
    #if DEBUG
        private let continuation: CheckedContinuation<Value, Never>
        fileprivate init(_ continuation: CheckedContinuation<Value, Never>) {
            self.continuation = continuation
        }
    #else
        private let continuation: UnsafeContinuation<Value, Never>
        fileprivate init(_ continuation: UnsafeContinuation<Value, Never>) {
            unsafe self.continuation = continuation
        }
    #endif

    /// Lets the task go on with a value. Never under a lock: the task may start at once.
    @usableFromInline
    package func resume(returning value: Value) {
        #if DEBUG
            continuation.resume(returning: value)
        #else
            unsafe continuation.resume(returning: value)
        #endif
    }
}

/// Suspends the task and hands its continuation to a closure, which must see to it that it is resumed exactly once.
@usableFromInline
package func suspend<Value: Sendable>(
    isolation: isolated (any Actor)? = #isolation, _ body: (Waiter<Value>) -> Void
) async -> Value {
    #if DEBUG
        await withCheckedContinuation(isolation: isolation) { body(Waiter($0)) }
    #else
        await unsafe withUnsafeContinuation(isolation: isolation) { unsafe body(Waiter($0)) }
    #endif
}
