/// Where a watch learns about the network: the kernel, or in tests something else.
package protocol NetworkSource: Sendable {
    /// Opens a socket that becomes readable when something may have changed, and is read until it is empty; it does not block,
    /// and belongs to the caller.
    func openNews() throws(SystemError) -> Int32

    /// Whether a datagram that came on that socket is a reason to look.
    func matters(_ datagram: [UInt8]) -> Bool

    /// Looks at all of it. It blocks for as long as it takes, which is below a millisecond on most machines.
    func look() -> NetworkMonitorMachine.Look
}
