import Foundation
import Glibc
import Martlet
import MartletTestSupport
import MartletTesting
import Testing

/// The features of AFNetworking that concern the network and its settings.
enum NetworkScenarios {
    static let all = [
        MigrationScenario("A2", "The progress of a task pauses, resumes and cancels it", progress),
        MigrationScenario(
            "A9", "Sessions and requests have settings for timeouts, cookies, cache and service", settings),
        MigrationScenario("A14", "The network and single hosts are reachable or not", reachability),
    ]

    static func progress() async throws {
        try await withDirectory { directory async throws in
            let size: UInt64 = 64 << 20
            try await TestOrigin.withOrigin { _ in
                .pattern(size)
            } run: { origin async throws in
                let session = HTTPSession.plain()
                let request = try HTTPRequest(method: .get, url: origin.url())
                let task = await session.downloadTask(for: request, to: directory.file("out"))
                _ = try await task.response
                let progress = task.downloadProgress
                await progress.pause()
                #expect(await task.state == .paused)
                // This is long enough for the whole body, if the window of the connection did not stop the server.
                let start = ContinuousClock.now
                #expect(await eventually { ContinuousClock.now - start > .milliseconds(300) })
                #expect(progress.current.completedByteCount < size)
                #expect(origin.recorder.counts.bytesSent < size)
                await progress.resume()
                _ = try await task.value
                #expect(progress.current.completedByteCount == size)
                let cancelled = await session.downloadTask(for: request, to: directory.file("none"))
                await cancelled.downloadProgress.cancel()
                await #expect(throws: CancellationError.self) { try await cancelled.value }
                #expect(!FileManager.default.fileExists(atPath: directory.appending("none")))
            }
        }
    }

    /// The type of service (RFC 2474) of this process's sockets that are connected to a port.
    private static func serviceMarks(toPort port: Int) throws -> Set<Int32> {
        var marks: Set<Int32> = []
        for name in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") {
            guard let descriptor = Int32(name) else { continue }
            var address = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isConnected = unsafe withUnsafeMutablePointer(to: &address) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                    unsafe getpeername(descriptor, pointer, &length) == 0
                }
            }
            guard isConnected, UInt16(bigEndian: address.sin_port) == UInt16(port) else { continue }
            var mark: Int32 = -1
            var size = socklen_t(MemoryLayout<Int32>.size)
            _ = unsafe getsockopt(descriptor, Int32(IPPROTO_IP), IP_TOS, &mark, &size)
            marks.insert(mark)
        }
        return marks
    }

    static func settings() async throws {
        let gate = Gate()
        try await TestOrigin.withOrigin { request in
            if request.path == "/held" { await gate.pass() }
            return OriginResponse(
                200, headers: ["Set-Cookie": "a=b", "Cache-Control": "max-age=600"],
                body: .text(request.headers["Cookie"] ?? "none"))
        } run: { origin async throws in
            defer { gate.open() }
            let session = HTTPSession.plain {
                $0.cookies = CookieJar()
                $0.cache = .memoryOnly()
                $0.serviceClass = .background
            }
            #expect(try await session.get(origin.url("/1")).text == "none")
            #expect(try await session.get(origin.url("/2")).text == "a=b")
            #expect(try serviceMarks(toPort: origin.port) == [1 << 2])
            #expect(try await session.get(origin.url("/2")).source == .cache)
            var options = RequestOptions(priority: .high)
            options.usesCookies = false
            options.cacheMode = .reload
            #expect(try await session.get(origin.url("/2"), options: options).text == "none")
            let hurried = session.with { $0.timeouts.head = .milliseconds(50) }
            let head = await #expect(throws: HTTPError.self) { try await hurried.get(origin.url("/held")) }
            #expect(head?.timeout == .head)
            let short = RequestOptions(timeouts: Timeouts(total: .milliseconds(50)))
            let total = await #expect(throws: HTTPError.self) {
                try await session.get(origin.url("/held"), options: short)
            }
            #expect(total?.timeout == .total)
        }
    }

    static func reachability() async throws {
        let network = ManualNetworkPath(.unknown)
        var paths = network.monitor.makeAsyncIterator()
        #expect(await paths.next()?.status == .unknown)
        network.set(.unsatisfied)
        #expect(await paths.next()?.status == .unsatisfied)
        for kind in [NetworkInterface.Kind.mobile, .wifi] {
            network.set(NetworkPath([NetworkInterface(name: "net0", kind: kind)]))
            let path = try #require(await paths.next())
            #expect(path.isSatisfied)
            #expect(path.kind == kind)
            #expect(path.isExpensive == (kind == .mobile))
        }
        let far = try HTTPURL("http://192.0.2.1/")
        #expect(await network.monitor.currentReachability(of: far).isReachable)
        network.set(.unsatisfied)
        #expect(await network.monitor.currentReachability(of: far).status == .unreachable)
        let origin = try await TestOrigin.start(handler: .status(200))
        let url = try HTTPURL(origin.url())
        let found = await NetworkMonitor.system.currentReachability(of: url, probe: .connection)
        #expect(found.isReachable && found.isProbed)
        #expect(origin.requests.isEmpty)
        await origin.stop()
        // Another server may have the port by now: a wrong port of an address without servers is rejected.
        let rejected = try HTTPURL("http://127.0.73.1:1/")
        #expect(
            await NetworkMonitor.system.currentReachability(of: rejected, probe: .connection).status
                == .unreachable)
    }
}
