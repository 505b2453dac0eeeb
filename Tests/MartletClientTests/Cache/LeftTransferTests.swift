import Dispatch
import Martlet
import MartletCache
import MartletStorage
import MartletTesting
import MartletTestSupport
import MartletTransport
import Testing

@testable import MartletCaching
@testable import MartletCore

@Suite("Transfers whose readers went on before all was stored")
struct LeftTransferTests {
    private static func redirect(
        to path: String = "/new", _ change: (inout OriginResponse) -> Void = { _ in }
    ) -> OriginResponse {
        .redirect(to: path, status: 301).with {
            $0.fields.append("Cache-Control", "max-age=600")
            change(&$0)
        }
    }

    /// How often a path was asked for.
    private static func count(_ path: String, _ origin: TestOrigin) -> Int {
        origin.requests.count { $0.target == path }
    }

    @Test("A redirect that is still being written to disk answers those who ask behind it")
    func redirectBeingStored() async throws {
        let scene = try CacheFaultScene()
        try await TestOrigin.withOrigin { request in
            request.path == "/old" ? LeftTransferTests.redirect() : CacheScene.answer("new", "no-store")
        } run: { origin async throws in
            let cache = try await scene.openedCache()
            let session = scene.session(cache)
            let (begun, goesOn) = (Reached(), DispatchSemaphore(value: 0))
            defer { goesOn.signal() }
            // The last step of storing it, on a thread that may wait.
            scene.files.interrupt(.rename) {
                begun.note()
                goesOn.wait()
            }
            for _ in 0..<3 {
                let answer = try await session.get(origin.url("/old"))
                #expect(answer.text == "new" && answer.metrics.hops.map(\.status) == [301])
                #expect(await eventually { begun.isReached })
            }
            #expect(cache.statistics.stores == 0 && cache.statistics.shared == 2)
            #expect(LeftTransferTests.count("/old", origin) == 1)
            goesOn.signal()
            #expect(await eventually { cache.statistics.stores == 1 })
            let answer = try await session.get(origin.url("/old"))
            #expect(answer.text == "new" && cache.statistics.hits == 1)
            #expect(LeftTransferTests.count("/old", origin) == 1 && origin.requests.count == 5)
        }
    }

    @Test("A redirect whose small body comes behind its head is stored, too", arguments: [false, true])
    func bodyBehindTheHead(isChunked: Bool) async throws {
        let signals = SignalBox()
        try await TestOrigin.withOrigin { request in
            let number = String(request.path.dropFirst(5))
            guard request.path.hasPrefix("/old/") else {
                // Whoever follows the redirect is there before its body has come.
                signals.raise(number)
                return CacheScene.answer("new", "no-store")
            }
            return LeftTransferTests.redirect(to: "/new/" + number) {
                if isChunked { $0.framing = .chunked() }
                $0.body = .stream(length: isChunked ? nil : 5) { writer in
                    try await writer.write("")
                    try await signals.wait(for: number)
                    try await writer.write("moved")
                }
            }
        } run: { origin async throws in
            signals.use(origin)
            let (session, _) = try CacheScene.session()
            // A machine that stalls may take the second for which the body is waited for; then it is asked for again.
            for number in 0..<100 {
                let path = "/old/\(number)"
                for _ in 0..<2 { #expect(try await session.get(origin.url(path)).text == "new") }
                if LeftTransferTests.count(path, origin) == 1 { return }
            }
            Issue.record("no redirect is stored")
        }
    }

    @Test("A redirect whose body does not come is followed all the same, and not stored")
    func bodyThatDoesNotCome() async throws {
        try await TestOrigin.withOrigin { request in
            guard request.path != "/new" else { return CacheScene.answer("new", "no-store") }
            return LeftTransferTests.redirect {
                $0.body = .text("moved")
                $0.fault = OriginFault(.stall, afterBodyBytes: 1)
            }
        } run: { origin async throws in
            let (session, cache) = try CacheScene.session()
            #expect(try await session.get(origin.url("/old")).text == "new")
            #expect(await eventually { session.core.flights.memberCount == 0 })
            #expect(try await session.get(origin.url("/old")).text == "new")
            #expect(LeftTransferTests.count("/old", origin) == 2 && cache.statistics.stores == 0)
        }
    }

    @Test("What has come whole goes on without readers and takes others; what has not is given up")
    func leaves() async throws {
        let head = StoredHead(
            key: CacheKey(url: "http://a/"), status: 301, reason: "", fields: FieldBlock(),
            requestTime: .now, responseTime: .now)
        for isWhole in [false, true] {
            let flight = CacheFlight(loop: .sharedOrStalled, watcher: nil, isUnattended: false) { true }
            let first = try #require(flight.join())
            try flight.landTransfer(of: StoredVariant(head: head, bodyLength: 0))
            flight.append([1, 2, 3])
            #expect(first.ending() != nil)
            if isWhole { flight.noteWhole {} }
            #expect((first.ending() == nil) == isWhole)
            first.leave()
            #expect(flight.control.isCancelled != isWhole)
            #expect((flight.join() != nil) == isWhole)
            #expect(await flight.waitForDemand() == isWhole)
        }
    }

    @Test("A large rest of a body that nobody wants is not waited for")
    func largeRest() throws {
        let flight = CacheFlight(loop: .sharedOrStalled, watcher: nil, isUnattended: false) { true }
        let member = try #require(flight.join())
        flight.append([UInt8](repeating: 0, count: 64 * 1024))
        #expect(member.ending() != nil)
        flight.append([0])
        #expect(member.ending() == nil)
    }
}
