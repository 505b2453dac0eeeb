import Glibc
@testable import MartletConditions
import MartletTransport
import Synchronization

/// A network that the test controls: its query results and its events.
final class FakeNetwork: NetworkSource {
    private struct State {
        var outcome: NetworkMonitorMachine.QueryOutcome
        var opening: SystemError?
        var peers: [Int32] = []
        var openCount = 0
    }

    private let state: Mutex<State>
    private let queries = CurrentValue(0)

    /// Creates a network with a fixed query result.
    /// - Parameter opening: The error of opening its socket; `nil` for success.
    init(_ outcome: NetworkMonitorMachine.QueryOutcome, opening: SystemError? = nil) {
        state = Mutex(State(outcome: outcome, opening: opening))
    }

    deinit {
        for peer in state.withLock({ $0.peers }) { close(peer) }
    }

    /// The number of times its socket was opened.
    var openCount: Int { state.withLock { $0.openCount } }
    /// The number of queries.
    var queryCount: Int { queries.value }

    /// Waits until `count` queries were made.
    func queried(_ count: Int) async {
        var seen: UInt64 = 0
        while let (version, value) = await queries.next(after: seen), value < count { seen = version }
    }

    /// Sets the result of later queries.
    func become(_ outcome: NetworkMonitorMachine.QueryOutcome) {
        state.withLock { $0.outcome = outcome }
    }

    /// Lets its socket be opened from now on.
    func letOpen() {
        state.withLock { $0.opening = nil }
    }

    /// Emits an event with the bytes of a datagram.
    func emit(_ datagram: [UInt8] = CapturedNetlink.addresses) {
        for peer in state.withLock({ $0.peers }) {
            _ = unsafe datagram.withUnsafeBytes {
                unsafe send(peer, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
        }
    }

    /// Whether the subscribers have closed all of its sockets.
    var isClosed: Bool {
        state.withLock(\.peers).allSatisfy { peer in
            var byte: UInt8 = 0
            let count = unsafe send(peer, &byte, 1, Int32(MSG_NOSIGNAL))
            return count < 0 && errno != EAGAIN
        }
    }

    func openEventSocket() throws(SystemError) -> Int32 {
        if let error = state.withLock({ $0.opening }) { throw error }
        var pair: [Int32] = [0, 0]
        let type = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard unsafe socketpair(AF_UNIX, type, 0, &pair) == 0 else {
            throw SystemError(operation: "socketpair", code: errno)
        }
        state.withLock { state in
            state.peers.append(pair[1])
            state.openCount += 1
        }
        return pair[0]
    }

    func query() -> NetworkMonitorMachine.QueryOutcome {
        // Only one thread makes queries.
        let count = queries.value + 1
        defer { queries.update { count } }
        return state.withLock { $0.outcome }
    }
}
