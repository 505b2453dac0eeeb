import MartletTestSupport
import Synchronization
import Testing

@testable import MartletTransport

@Suite("Custom trust policies")
struct TLSCustomTrustTests {
    private func handshake(
        _ trust: TrustPolicy, _ server: TLSContext, name: String = "localhost", version: TLSVersion = .tls13
    ) async throws -> TLSPair.Outcome {
        let client = try Certificates.client {
            $0.trust = trust
            $0.maximumVersion = version
        }
        return await (try TLSPair()).handshake(client: client, server: server, name: name)
    }

    @Test("The closure receives the chain, the host and the verification result", arguments: TLSVersion.allCases)
    func question(version: TLSVersion) async throws {
        let authority = try CertificateAuthority()
        let below = try authority.intermediate()
        let issued = try below.issue(.loopback)
        let server = try TLSContext.server(
            certificateChainPEM: issued.certificateChainPEM, privateKeyPEM: issued.privateKeyPEM)
        let seen = Mutex<[PresentedChain]>([])
        let trust = authority.trust.evaluated { chain, host in
            seen.withLock { $0.append(chain) }
            return host == "localhost" ? .accept : .deny(reason: host)
        }
        let outcome = try await handshake(trust, server, version: version)
        #expect(throws: Never.self) { try outcome.client.get() }
        let chains = seen.withLock { $0 }
        let chain = try #require(chains.first)
        #expect(chains.count == 1)
        #expect(chain.isTrusted)
        #expect(chain.host == "localhost")
        #expect(chain.certificates.count == 2)
        #expect(chain.verified.count == 3)
        let leaf = try #require(chain.certificates.first)
        #expect(leaf.der == issued.certificateDER)
        #expect(leaf.subject == "CN=localhost")
        #expect(leaf.issuer == "CN=Martlet test intermediate")
        #expect(leaf.names == ["localhost", "127.0.0.1", "0:0:0:0:0:0:0:1"])
        #expect(try leaf.publicKey == PublicKeyPin(of: .text(issued.certificateChainPEM)))
    }

    @Test("The closure can accept a chain that the verification rejects", arguments: TLSVersion.allCases)
    func accepts(version: TLSVersion) async throws {
        let issued = try CertificateAuthority.selfSigned(CertificateTemplate(hostNames: ["other.example"]))
        let server = try TLSContext.server(
            certificateChainPEM: issued.certificateChainPEM, privateKeyPEM: issued.privateKeyPEM)
        let pin = try PublicKeyPin(of: .text(issued.certificateChainPEM))
        let faults = Mutex<[TLSError.Kind?]>([])
        let trust = TrustPolicy.only(.text(try CertificateAuthority().rootPEM)).evaluated { chain, _ in
            faults.withLock { $0.append(chain.verificationError) }
            #expect(chain.verified.isEmpty)
            return chain.certificates.first?.publicKey == pin ? .accept : .deny(reason: "unknown")
        }
        let outcome = try await handshake(trust, server, version: version)
        let client = try outcome.client.get()
        try await client.send([7])
        #expect(try await outcome.server.get().receive().1 == [7])
        let seen = faults.withLock { $0 }
        #expect(seen.count == 1)
        #expect(seen.first != .some(nil))
    }

    @Test("The closure can reject a valid chain, and the server receives an alert", arguments: TLSVersion.allCases)
    func denies(version: TLSVersion) async throws {
        let trust = try Certificates.authority.get().trust.evaluated { _, _ in .deny(reason: "not today") }
        let outcome = try await handshake(trust, try Certificates.server(), version: version)
        #expect(outcome.clientError?.kind == .denied(reason: "not today"))
        #expect(outcome.clientError?.description.contains("not today") == true)
        guard case .alert = outcome.serverError?.kind else {
            Issue.record("no alert: \(String(describing: outcome.serverError))")
            return
        }
    }

    @Test("Pins are enforced whatever the closure returns")
    func pins() async throws {
        let authority = try Certificates.authority.get()
        let root = try PublicKeyPin(of: .text(authority.rootPEM)).base64
        let spare = try PublicKeyPin(sha256: [UInt8](repeating: 1, count: 32)).base64
        let other = try PublicKeyPin(sha256: [UInt8](repeating: 2, count: 32)).base64
        let good = try authority.trust.pinningPublicKeys(root, backup: spare).evaluated { _, _ in .accept }
        #expect(try await handshake(good, try Certificates.server()).clientError == nil)
        let bad = try authority.trust.pinningPublicKeys(other, backup: spare).evaluated { _, _ in .accept }
        guard case .pinMismatch = try await handshake(bad, try Certificates.server()).clientError?.kind else {
            Issue.record("not refused")
            return
        }
    }

    @Test("The closure is called for each connection, and no session is resumed", arguments: TLSVersion.allCases)
    func eachConnection(version: TLSVersion) async throws {
        let count = Atomic<Int>(0)
        let trust = try Certificates.authority.get().trust.evaluated { _, _ in
            count.wrappingAdd(1, ordering: .relaxed)
            return .accept
        }
        let client = try Certificates.client {
            $0.trust = trust
            $0.maximumVersion = version
        }
        let server = try Certificates.server()
        for expected in 1...3 {
            let outcome = await (try TLSPair()).handshake(client: client, server: server)
            let (near, far) = (try outcome.client.get(), try outcome.server.get())
            try await far.send([1])
            #expect(try await near.receive().1 == [1])
            #expect(near.information.tls?.isResumed == false)
            #expect(count.load(ordering: .relaxed) == expected)
            near.close()
            far.close()
        }
    }

    @Test("A closure that never returns is cancelled at the deadline, and the handshake ends")
    func deadline() async throws {
        // On a slow machine the deadline can pass before the closure is called. The test then retries with a later
        // deadline.
        var timeout = Duration.milliseconds(300)
        while try await !endsWithDeadline(after: timeout) {
            timeout *= 3
            try #require(timeout < .seconds(600), "the closure was never asked")
        }
    }

    /// Connects with a closure that never returns, so that the deadline must end the handshake.
    ///
    /// - Returns: Whether the closure was called before the deadline.
    private func endsWithDeadline(after timeout: Duration) async throws -> Bool {
        let asked = Atomic<Bool>(false)
        let cancelled = OneShot<Void>()
        // The closure does not return before the end of the test, and then its task ends.
        let end = OneShot<Void>()
        defer { end.fulfill(()) }
        let trust = try Certificates.authority.get().trust.evaluated { _, _ in
            asked.store(true, ordering: .releasing)
            await withTaskCancellationHandler {
                _ = await end.wait(until: .distantFuture, on: EventLoop.sharedOrStalled)
            } onCancel: {
                cancelled.fulfill(())
            }
            return .accept
        }
        let client = try Certificates.client { $0.trust = trust }
        let pair = try TLSPair()
        async let accepted = TLSPair.accept(pair.server, try Certificates.server())
        let deadline = MonotonicTime.now().advanced(by: timeout)
        await #expect {
            try await TLSStream.connect(
                socket: pair.client, context: client, serverName: "localhost", port: 443, deadline: deadline)
        } throws: { error in
            if case TransportError.timedOut = error { true } else { false }
        }
        #expect(pair.client.isClosed)
        guard case .failure = try await accepted else {
            Issue.record("the server was accepted")
            return true
        }
        guard asked.load(ordering: .acquiring) else { return false }
        guard case .value = await cancelled.wait(until: TLSPair.soon, on: try EventLoop.shared.get()) else {
            Issue.record("the closure's task was not cancelled")
            return true
        }
        return true
    }

    @Test("Cancelling the connection while the closure runs ends the handshake")
    func cancel() async throws {
        let asked = OneShot<Void>()
        let end = OneShot<Void>()
        defer { end.fulfill(()) }
        let trust = try Certificates.authority.get().trust.evaluated { _, _ in
            asked.fulfill(())
            _ = await end.wait(until: .distantFuture, on: EventLoop.sharedOrStalled)
            return .accept
        }
        let client = try Certificates.client { $0.trust = trust }
        let pair = try TLSPair()
        async let accepted = TLSPair.accept(pair.server, try Certificates.server())
        let connecting = Task { await TLSPair.connect(pair.client, client, "localhost", 443) }
        _ = await asked.wait(until: TLSPair.soon, on: try EventLoop.shared.get())
        connecting.cancel()
        guard case .failure(.interrupted) = await connecting.value else {
            Issue.record("not interrupted")
            return
        }
        #expect(pair.client.isClosed)
        _ = try await accepted
    }
}
