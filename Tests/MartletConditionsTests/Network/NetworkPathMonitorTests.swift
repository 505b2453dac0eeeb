import Glibc
@testable import MartletConditions
import MartletTransport
import Testing

@Suite("Network path monitor")
struct NetworkPathMonitorTests {
    private static let up = NetworkSnapshot(path: NetworkPath([.init(name: "eth0", kind: .wired)]))
    private static let wireless = NetworkSnapshot(path: NetworkPath([.init(name: "wlan0", kind: .wifi)]))
    private static let down = NetworkSnapshot(path: .unsatisfied)

    private func watch(_ network: FakeNetwork) throws -> NetworkPathMonitor {
        NetworkPathMonitor(loop: try EventLoop.shared.get(), source: network)
    }

    @Test("The first view is delivered immediately, and then each view that an event changes")
    func follows() async throws {
        let network = FakeNetwork(.seen(Self.up))
        let watch = try watch(network)
        let subscription = watch.subscription()
        var (seen, view) = try #require(await subscription.next(after: 0))
        #expect(view == Self.up)
        for next in [Self.down, Self.wireless, Self.down] {
            network.become(.seen(next))
            network.emit()
            (seen, view) = try #require(await subscription.next(after: seen))
            #expect(view == next)
        }
    }

    @Test("Events that lead to the same view are not delivered")
    func repeated() async throws {
        let network = FakeNetwork(.seen(Self.up))
        let watch = try watch(network)
        let subscription = watch.subscription()
        let (seen, _) = try #require(await subscription.next(after: 0))
        network.emit()
        await network.queried(2)
        network.become(.seen(Self.down))
        network.emit()
        let next = try #require(await subscription.next(after: seen))
        #expect(next.value == Self.down)
        #expect(next.version == seen + 1)
    }

    @Test("Irrelevant events cause no query")
    func irrelevant() async throws {
        let network = FakeNetwork(.seen(Self.up))
        let watch = try watch(network)
        let subscription = watch.subscription()
        let (seen, _) = try #require(await subscription.next(after: 0))
        // Twenty events for a route other than the default route, and then an event that matters.
        for _ in 0..<20 { network.emit(Array(CapturedNetlink.routes4.dropFirst(60))) }
        network.become(.seen(Self.down))
        network.emit()
        #expect(await subscription.next(after: seen)?.value == Self.down)
        #expect(network.queryCount == 2)
    }

    @Test("A truncated or invalid datagram counts as an event")
    func cut() async throws {
        let network = FakeNetwork(.seen(Self.up))
        let watch = try watch(network)
        let subscription = watch.subscription()
        let (seen, _) = try #require(await subscription.next(after: 0))
        network.become(.seen(Self.down))
        network.emit([1, 2, 3])
        #expect(await subscription.next(after: seen)?.value == Self.down)
    }

    @Test("Without subscribers no socket is open, and all subscribers share one")
    func sharing() async throws {
        let network = FakeNetwork(.seen(Self.up))
        let watch = try watch(network)
        #expect(!watch.isListening)
        #expect(network.openCount == 0)
        do {
            let one = watch.subscription()
            let other = watch.subscription()
            #expect(await one.next(after: 0)?.value == Self.up)
            #expect(await other.next(after: 0)?.value == Self.up)
            #expect(watch.isListening)
            #expect(network.openCount == 1)
        }
        #expect(!watch.isListening)
        #expect(network.isClosed)
        network.become(.seen(Self.down))
        let later = watch.subscription()
        #expect(await later.next(after: 0)?.value == Self.down)
        #expect(network.openCount == 2)
    }

    @Test("A cancelled wait ends without a view, and the others continue")
    func cancelling() async throws {
        let network = FakeNetwork(.seen(Self.up))
        let watch = try watch(network)
        let subscription = watch.subscription()
        let (seen, _) = try #require(await subscription.next(after: 0))
        let task = Task { await subscription.next(after: seen)?.value }
        task.cancel()
        #expect(await task.value == nil)
        network.become(.seen(Self.down))
        network.emit()
        #expect(await subscription.next(after: seen)?.value == Self.down)
    }

    @Test(
        "If netlink is denied, the view is unknown and no query is repeated",
        arguments: [EPERM, EACCES, EAFNOSUPPORT, EPROTONOSUPPORT])
    func denied(_ code: Int32) async throws {
        let network = FakeNetwork(.seen(Self.up), opening: SystemError(operation: "socket", code: code))
        let watch = try watch(network)
        let subscription = watch.subscription()
        #expect(await subscription.next(after: 0)?.value == .unknown)
        #expect(network.queryCount == 0)
        #expect(!watch.isListening)
    }

    @Test("If no descriptor is available, opening is retried until one is")
    func shortage() async throws {
        let network = FakeNetwork(.seen(Self.up), opening: SystemError(operation: "socket", code: EMFILE))
        let watch = try watch(network)
        let subscription = watch.subscription()
        let (seen, view) = try #require(await subscription.next(after: 0))
        #expect(view == .unknown)
        network.letOpen()
        #expect(await subscription.next(after: seen)?.value == Self.up)
        #expect(watch.isListening)
    }

    @Test("Fifty changes end with the last of them")
    func flapping() async throws {
        let network = FakeNetwork(.seen(Self.up))
        let watch = try watch(network)
        let subscription = watch.subscription()
        var (seen, view) = try #require(await subscription.next(after: 0))
        for count in 1...50 {
            network.become(.seen(count.isMultiple(of: 2) ? Self.up : Self.down))
            network.emit()
        }
        network.become(.seen(Self.wireless))
        network.emit()
        while view != Self.wireless {
            (seen, view) = try #require(await subscription.next(after: seen))
        }
        #expect(network.queryCount <= 52)
    }

    @Test("The kernel's table of this machine is read and lists its addresses")
    func kernel() throws {
        guard case .seen(let view) = NetlinkNetworkSource().query() else {
            // Another process changes the network at the same time, or the kernel denies the query.
            return
        }
        let addresses = try #require(view.addresses)
        #expect(addresses.isEmpty || addresses.contains { $0.isLoopback } || view.path.isSatisfied)
    }
}
