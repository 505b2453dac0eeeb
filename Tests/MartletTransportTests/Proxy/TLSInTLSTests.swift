import MartletTestSupport
import MartletTransport
import Testing

@Suite("TLS inside of TLS")
struct TLSInTLSTests {
    /// Both ends of a connection with TLS to a server inside TLS to a proxy.
    private struct Ends {
        let client: TLSStream
        let server: TLSStream
        let carrier: TLSStream
    }

    private func ends(
        _ pair: TLSPair, _ outer: CertificateAuthority, _ inner: CertificateAuthority,
        clientContext: TLSContext? = nil
    ) async throws -> Ends {
        let outerEnds = await pair.handshake(
            client: try context(trusting: outer), server: try serverContext(outer))
        let carrier = try outerEnds.client.get()
        let serverCarrier = try outerEnds.server.get()
        let client = try clientContext ?? context(trusting: inner)
        let server = try serverContext(inner)
        async let accepted = TLSStream.accept(
            socket: pair.server, carrier: serverCarrier, context: server, deadline: TLSPair.soon)
        let connected = try await TLSStream.connect(
            socket: pair.client, carrier: carrier, context: client, serverName: "localhost", port: 443,
            deadline: TLSPair.soon)
        return Ends(client: connected, server: try await accepted, carrier: carrier)
    }

    private func context(trusting authority: CertificateAuthority) throws -> TLSContext {
        try TLSContext(client: TLSSettings(trust: .only(.text(authority.rootPEM))))
    }

    private func serverContext(_ authority: CertificateAuthority) throws -> TLSContext {
        let issued = try authority.issue(.loopback)
        return try .server(
            certificateChainPEM: issued.certificateChainPEM, privateKeyPEM: issued.privateKeyPEM)
    }

    @Test("Each layer is verified with its own trust")
    func trust() async throws {
        let (outer, inner) = (try CertificateAuthority(), try CertificateAuthority())
        let pair = try TLSPair()
        let ends = try await ends(pair, outer, inner)
        try await ends.client.send(Array("hello".utf8))
        #expect(try await ends.server.receive(exactly: 5) == Array("hello".utf8))
        #expect(ends.client.information.tls != nil)
        ends.client.close()
        ends.server.close()
        await #expect(throws: TransportError.self) {
            _ = try await self.ends(try TLSPair(), outer, inner, clientContext: context(trusting: outer))
        }
    }

    /// The reason for which one side rejects the handshake.
    enum Rejection: CaseIterable {
        case unknownAuthority, wrongName, expired, notYetValid, pinMismatch, denied, oldVersion
    }

    // The outer layer once cleared OpenSSL's error queue when the inner one sent its alert, and the reason was lost.
    @Test(
        "A server is rejected for the same reason with and without an outer TLS layer", arguments: Rejection.allCases)
    func rejections(_ rejection: Rejection) async throws {
        var template = CertificateTemplate.loopback
        var settings = TLSSettings(trust: try Certificates.authority.get().trust)
        var expected: TLSError.Kind?
        switch rejection {
        case .unknownAuthority:
            settings.trust = try CertificateAuthority(commonName: "Another").trust
            expected = .unknownAuthority
        case .wrongName:
            template = CertificateTemplate(hostNames: ["other.example"])
            expected = .nameMismatch(["other.example"])
        case .expired:
            (template.notBefore, template.notAfter) = (.seconds(-7200), .seconds(-60))
            expected = .expired
        case .notYetValid:
            template.notBefore = .seconds(3600)
            expected = .notYetValid
        case .pinMismatch:
            let other = try PublicKeyPin(of: .text(CertificateAuthority(commonName: "Another").rootPEM))
            settings.trust = settings.trust.dangerouslyPinningWithoutBackup(other)
        case .denied:
            settings.trust = .custom { _, _ in .deny(reason: "not today") }
            expected = .denied(reason: "not today")
        case .oldVersion:
            settings.minimumVersion = .tls13
            expected = .protocolVersion
        }
        let issued = try Certificates.authority.get().issue(template)
        var serverSettings = TLSServerSettings(identity: issued.identity)
        if rejection == .oldVersion { serverSettings.maximumVersion = .tls12 }
        if rejection == .pinMismatch {
            let chain = [issued.certificateChainPEM, try Certificates.authority.get().rootPEM]
            expected = .pinMismatch(found: try chain.map { try PublicKeyPin(of: .text($0)) })
        }
        let server = try TLSContext(server: serverSettings)
        let client = try TLSContext(client: settings)
        let direct = await (try TLSPair()).handshake(client: client, server: server)
        #expect(direct.clientError?.kind == expected)
        let nested = try await nestedFault(client, server)
        #expect(nested == expected)
    }

    /// Returns the error with which a client rejects a server through a TLS proxy.
    private func nestedFault(_ client: TLSContext, _ server: TLSContext) async throws -> TLSError.Kind? {
        let pair = try TLSPair()
        let outer = await pair.handshake(client: try Certificates.client(), server: try Certificates.server())
        let (carrier, serverCarrier) = (try outer.client.get(), try outer.server.get())
        async let accepted = try? TLSStream.accept(
            socket: pair.server, carrier: serverCarrier, context: server, deadline: TLSPair.soon)
        let error = await #expect(throws: TransportError.self) {
            try await TLSStream.connect(
                socket: pair.client, carrier: carrier, context: client, serverName: "localhost", port: 443,
                deadline: TLSPair.soon)
        }
        await accepted?.close()
        guard case .tls(let error)? = error else { return nil }
        return error.kind
    }

    @Test("Megabytes pass in both directions concurrently without loss")
    func transfer() async throws {
        let authority = try CertificateAuthority()
        let ends = try await ends(try TLSPair(), authority, authority)
        let up = BytePattern.bytes(3_000_000, seed: 5)
        let down = BytePattern.bytes(2_000_000, seed: 6)
        async let sentUp: Void = ends.client.send(up)
        async let sentDown: Void = ends.server.send(down)
        async let gotUp = ends.server.receive(exactly: up.count)
        let gotDown = try await ends.client.receive(exactly: down.count)
        #expect(gotDown == down)
        #expect(try await gotUp == up)
        _ = try await (sentUp, sentDown)
        ends.client.close()
        ends.server.close()
    }

    @Test("Small pieces that are read one byte at a time arrive complete")
    func oneByOne() async throws {
        let authority = try CertificateAuthority()
        let ends = try await ends(try TLSPair(), authority, authority)
        try await ends.server.send(Array("abcdefgh".utf8))
        var all: [UInt8] = []
        while all.count < 8 { all += try await ends.client.receive(upTo: 1).1 }
        #expect(all == Array("abcdefgh".utf8))
        #expect(ends.client.probe() == .quiet)
        ends.client.close()
        ends.server.close()
    }

    @Test("The end of the inner layer is clean, and the end of only the outer layer is not")
    func endings() async throws {
        let authority = try CertificateAuthority()
        let first = try await ends(try TLSPair(), authority, authority)
        first.server.close()
        guard case .endOfStream(isClean: true) = try await first.client.receive().0 else {
            Issue.record("no clean end")
            return
        }
        first.client.close()
        let second = try await ends(try TLSPair(), authority, authority)
        second.server.closeWithoutNotifying()
        guard case .endOfStream(isClean: false) = try await second.client.receive().0 else {
            Issue.record("a cut was taken for an end")
            return
        }
        second.client.close()
    }

    @Test("An idle stream is quiet until bytes arrive or it ends")
    func probing() async throws {
        let authority = try CertificateAuthority()
        let ends = try await ends(try TLSPair(), authority, authority)
        // Session tickets of the inner layer are bytes of the outer layer and do not make the stream unusable.
        #expect(ends.client.probe() == .quiet)
        try await ends.server.send([1])
        while ends.client.probe() == .quiet { await Task.yield() }
        #expect(ends.client.probe() == .unusable)
        ends.client.close()
        #expect(ends.client.probe() == .unusable)
        ends.server.close()
    }

    @Test("An interrupt ends a wait in the inner handshake and leaves nothing open")
    func interruption() async throws {
        let authority = try CertificateAuthority()
        let pair = try TLSPair()
        let outer = await pair.handshake(
            client: try context(trusting: authority), server: try serverContext(authority))
        let carrier = try outer.client.get()
        let context = try context(trusting: authority)
        let task = Task {
            _ = try await TLSStream.connect(
                socket: pair.client, carrier: carrier, context: context, serverName: "localhost", port: 443,
                deadline: .distantFuture)
        }
        // The first message of the inner handshake shows that it waits for a response.
        #expect(try await !outer.server.get().receive().1.isEmpty)
        carrier.interrupt()
        await #expect(throws: TransportError.self) { try await task.value }
        #expect(pair.client.isClosed)
        try outer.server.get().close()
    }
}
