import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@Suite("Priority of queued requests")
struct PriorityTests {
    /// Queues requests that `wait` starts, while the only connection of the session is in use.
    /// - Returns: The request targets in the order of their arrival at the origin, without the first request.
    private func order(
        _ wait:
            @Sendable (TestOrigin, HTTPSession, inout ThrowingTaskGroup<Void, any Error>) async throws -> Void
    ) async throws -> [String] {
        let signals = SignalBox()
        return try await TestOrigin.withOrigin { request in
            if request.path == "/first" { try await signals.wait(for: "go") }
            return .text("x")
        } run: { origin in
            signals.use(origin)
            let session = HTTPSession.own { configuration in
                configuration.pool.connectionsPerHost = 1
                configuration.pool.agingInterval = .seconds(3600)
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { _ = try await session.get(origin.url("/first")) }
                try await origin.waitForRequests(count: 1)
                try await wait(origin, session, &group)
                origin.signals.raise("go")
                try await group.waitForAll()
            }
            #expect(origin.connectionCount == 1)
            return origin.requests.dropFirst().map(\.target)
        }
    }

    @Test("A thumbnail with high priority is served before a hundred queued uploads")
    func thumbnail() async throws {
        let order = try await order { origin, session, group in
            for number in 0..<100 {
                group.addTask {
                    let options = RequestOptions(priority: .low)
                    _ = try await session.post(
                        origin.url("/upload/\(number)"), body: .text("file"), options: options)
                }
            }
            #expect(await eventually { session.poolStatus.waiting == 100 })
            group.addTask {
                let options = RequestOptions(priority: .high)
                _ = try await session.get(origin.url("/thumbnail"), options: options)
            }
            #expect(await eventually { session.poolStatus.waiting == 101 })
        }
        #expect(order.first == "/thumbnail")
        #expect(order.count == 101)
    }

    @Test("The priority of a queued task can be raised and lowered")
    func changed() async throws {
        let order = try await order { origin, session, group in
            var tasks: [HTTPTask] = []
            for number in 0..<4 {
                tasks.append(await session.task(for: try HTTPRequest(.get, origin, "/\(number)")))
                #expect(await eventually { session.poolStatus.waiting == number + 1 })
            }
            await tasks[3].setPriority(.high)
            await tasks[0].setPriority(.lowest)
            for task in tasks { group.addTask { _ = try await task.value } }
        }
        #expect(order == ["/3", "/1", "/2", "/0"])
    }

    @Test("Setting the priority of a task immediately after its creation takes effect")
    func changedAtOnce() async throws {
        let order = try await order { origin, session, group in
            var tasks: [HTTPTask] = []
            for number in 0..<20 {
                let task = await session.task(for: try HTTPRequest(.get, origin, "/\(number)"))
                if number == 19 { await task.setPriority(.high) }
                tasks.append(task)
            }
            #expect(await eventually { session.poolStatus.waiting == 20 })
            for task in tasks { group.addTask { _ = try await task.value } }
        }
        #expect(order.first == "/19")
    }

    @Test("Requests with the order last come, first served are served in reverse order")
    func lastFirst() async throws {
        let order = try await order { origin, session, group in
            for number in 0..<5 {
                group.addTask {
                    var options = RequestOptions()
                    options.queueOrder = .lastComeFirstServed
                    _ = try await session.get(origin.url("/\(number)"), options: options)
                }
                #expect(await eventually { session.poolStatus.waiting == number + 1 })
            }
        }
        #expect(order == ["/4", "/3", "/2", "/1", "/0"])
    }

    @Test("A view's queue order applies to its requests and not to those of its session")
    func viewLastFirst() async throws {
        let order = try await order { origin, session, group in
            let pictures = session.with { $0.queueOrder = .lastComeFirstServed }
            for number in 0..<6 {
                let session = number < 2 ? session : pictures
                group.addTask { _ = try await session.get(origin.url("/\(number)")) }
                #expect(await eventually { session.poolStatus.waiting == number + 1 })
            }
        }
        #expect(order == ["/5", "/4", "/3", "/2", "/0", "/1"])
    }
}
