import Martlet
import MartletPool
import MartletTesting
import MartletTestSupport
import MartletTransport
import MartletWire
import Synchronization
import Testing

@Suite("Nested calls")
struct NestedCallTests {
    /// The limit that the outer calls exhaust.
    enum Limit: CaseIterable {
        case host
        case total
    }

    private func session(_ limit: Limit, _ count: Int) -> HTTPSession {
        var configuration = SessionConfiguration.ephemeral
        if limit == .host {
            configuration.pool.connectionsPerHost = count
        } else {
            configuration.pool.totalConnections = count
        }
        return HTTPSession(configuration: configuration)
    }

    /// Serves a body of one gigabyte for `/endless`, and three bytes for all other paths.
    private func withOrigin(_ run: (TestOrigin) async throws -> Void) async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/endless" ? .pattern(1_000_000_000) : .text("end")
        } run: { origin async throws in
            try await run(origin)
        }
    }

    /// Nests calls within stream closures, up to a depth.
    private static func call(_ session: HTTPSession, _ origin: TestOrigin, depth: Int) async throws -> Int {
        guard depth > 0 else { return try await session.get(origin.url("/")).body.count }
        let request = try HTTPRequest(method: .get, url: origin.url("/endless"))
        return try await session.stream(request) { _, _ in
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<2 { group.addTask { try await call(session, origin, depth: depth - 1) } }
                return try await group.reduce(0, +)
            }
        }
    }

    @Test(
        "Stream closures that hold every connection can make nested calls",
        arguments: Limit.allCases, [1, 2])
    func nested(_ limit: Limit, _ depth: Int) async throws {
        try await withOrigin { origin in
            let session = session(limit, 2)
            let total = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<6 { group.addTask { try await Self.call(session, origin, depth: depth) } }
                return try await group.reduce(0, +)
            }
            #expect(total == 6 * 3 << depth)
            #expect(session.poolStatus.leased == 0)
            #expect(session.poolStatus.waiting == 0)
            await session.invalidateAndCancel()
        }
    }

    /// Returns the error of a request that is sent while the closures of two streams hold their connections.
    /// - Parameter limits: The limits that are set before the request is sent; `nil` for those of the session.
    private static func errorWhileHeld(
        _ session: HTTPSession, _ origin: TestOrigin, _ options: RequestOptions, limits: PoolLimits? = nil
    ) async throws -> HTTPError? {
        let started = Counter()
        let request = try HTTPRequest(method: .get, url: origin.url("/endless"))
        let held = (0..<2).map { _ in OneShot<Void>() }
        let streams = held.map { held in
            Task {
                try await session.stream(request) { _, _ in
                    started.add()
                    _ = await held.wait(until: .distantFuture, on: EventLoop.sharedOrStalled)
                }
            }
        }
        #expect(await eventually(within: TestTimeouts.long) { started.count == 2 })
        if let limits { session.setPoolLimits(limits) }
        let error = await #expect(throws: HTTPError.self) {
            try await session.get(origin.url("/"), options: options)
        }
        for held in held { held.fulfill(()) }
        for stream in streams { try await stream.value }
        return error
    }

    @Test(
        "The error of a timeout in the pool names the holders of the connections", arguments: Limit.allCases,
        [true, false])
    func explains(_ limit: Limit, _ isTotalClock: Bool) async throws {
        try await withOrigin { origin in
            let session = session(limit, 2)
            var options = RequestOptions()
            var timeouts = Timeouts()
            if isTotalClock {
                timeouts.total = .milliseconds(50)
            } else {
                timeouts.poolWait = .milliseconds(50)
            }
            options.timeouts = timeouts
            let error = try await Self.errorWhileHeld(session, origin, options)
            let target =
                limit == .host
                ? "connections to 127.0.0.1:\(origin.port)" : "connections to all hosts together"
            let setting = limit == .host ? "connectionsPerHost" : "totalConnections"
            #expect(error?.code == .timedOut)
            #expect(
                error?.message.contains(
                    "2 of 2 \(target) are in use: 2 by streams whose closure has not returned; raise \(setting)"
                )
                    == true, "\(error?.message ?? "")")
        }
    }

    // An earlier version reported "2 of 1 connections".
    @Test("The error of a timeout in the pool explains more connections than the limit allows")
    func explainsExcess() async throws {
        try await withOrigin { origin in
            let session = session(.host, 2)
            let options = RequestOptions { $0.timeouts.poolWait = .milliseconds(50) }
            let error = try await Self.errorWhileHeld(
                session, origin, options, limits: PoolLimits(connectionsPerHost: 1))
            let expected =
                "2 connections to 127.0.0.1:\(origin.port) are in use, above the limit of 1 (lowered, or exceeded while"
                + " code of the program runs): 2 by streams whose closure has not returned; raise connectionsPerHost"
            #expect(error?.message.contains(expected) == true, "\(error?.message ?? "")")
        }
    }

    @Test("A wait of more than ten seconds is reported with its reason")
    func longWait() async throws {
        try await withOrigin { origin in
            let reported = OneShot<[ConnectionPool.LongWait]>()
            var limits = PoolLimits()
            limits.connectionsPerHost = 1
            let loop = EventLoop.sharedOrStalled
            let pool = ConnectionPool(limits: limits, wireLimits: WireLimits(), loop: loop) {
                reported.fulfill($0)
            }
            defer { pool.shutDown() }
            let dialer = Dialer(settings: DialSettings(), loop: loop)
            let destination = Destination(isSecure: false, host: "127.0.0.1", port: origin.port)
            var request = ConnectionPool.Request()
            guard case .ticket(let first) = try pool.acquire(destination, by: dialer, request) else {
                Issue.record("an empty pool had a connection")
                return
            }
            let lease = try await first.lease()
            // Simulates a wait that began eleven seconds ago.
            let now = MonotonicTime.now().nanoseconds
            request.start = MonotonicTime(nanoseconds: now - min(now, 11_000_000_000))
            _ = try pool.acquire(destination, by: dialer, request)
            guard case .value(let waits) = await reported.wait(until: .distantFuture, on: loop) else {
                return
            }
            #expect(waits.map(\.requestCount) == [1])
            #expect(
                waits.first?.shortage.description
                    == "1 of 1 connections to 127.0.0.1:\(origin.port) are in use: 1 sending; "
                    + "raise connectionsPerHost, or let calls end sooner")
            lease.release(isReusable: false)
        }
    }
}
