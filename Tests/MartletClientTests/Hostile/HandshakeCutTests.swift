import MartletCore
import MartletDiagnostics
import MartletTesting
import MartletTestSupport
import MartletTransport
import MartletWire
import Testing

/// A correct TLS server with a relay that cuts or changes its bytes.
@Suite("Truncated and modified TLS", .timeLimit(.minutes(20)))
struct HandshakeCutTests {
    private static let answer = ServerScript.respond(CutKind.good)

    /// Runs a closure with a session that connects through a relay and does not resume TLS.
    private func withRelay(
        _ version: TLSVersion, _ clocks: Timeouts = .patient(),
        _ body: (HTTPSession, CuttingRelay) async throws -> Void
    ) async throws {
        try await TestOrigin.withOrigin(.tls(.trusted.versions(version...version)), scripts: Self.answer) {
            origin in
            let relay = try CuttingRelay(to: origin.port)
            let session = HTTPSession.trusting(origin) { $0.timeouts = clocks }
            try await body(session, relay)
            relay.close()
            #expect(await eventually { OpenSockets.count(toPort: relay.port) == 0 })
        }
    }

    /// Returns the text of the response, or the error.
    private func outcome(_ session: HTTPSession, _ relay: CuttingRelay) async throws -> Result<
        String, HTTPError
    > {
        do {
            return .success(try await session.get("https://127.0.0.1:\(relay.port)/").text)
        } catch let error as HTTPError {
            return .failure(error)
        }
    }

    @Test(
        "A TLS connection that is cut at any byte of the handshake or the response is an error",
        arguments: TLSVersion.allCases)
    func cuts(_ version: TLSVersion) async throws {
        try await withRelay(version) { session, relay in
            var (handshakeLength, count) = (0, 0)
            loop: while true {
                relay.use(.cut(count))
                switch try await outcome(session, relay) {
                case .success(let text):
                    #expect(text == "good")
                    break loop
                case .failure(let error) where error.phase == .tlsHandshake:
                    handshakeLength = count
                    #expect(error.code == .tlsFailed, "after \(count) bytes: \(error)")
                    #expect(
                        (error.underlying as? TLSError)?.kind == .truncated, "after \(count) bytes: \(error)")
                    #expect(!error.wasSent)
                case .failure(let error):
                    #expect(
                        (error.underlying as? WireError)?.isEndOfStream == true,
                        "after \(count) bytes: \(error)")
                    #expect(error.wasSent)
                }
                #expect(session.poolStatus.leased + session.poolStatus.dialing == 0)
                if count % 48 == 0 {
                    relay.use(.none)
                    #expect(try await outcome(session, relay).get() == "good")
                }
                // A TLS 1.2 handshake is slower, so only every third byte is tested.
                count += version == .tls13 ? 1 : 3
            }
            // The cuts covered the handshake and the data after it.
            #expect(handshakeLength > 500)
            #expect(count > handshakeLength + 50)
            relay.use(.none)
            #expect(try await outcome(session, relay).get() == "good")
        }
    }

    @Test(
        "A changed byte in a TLS connection is either an error or harmless",
        arguments: TLSVersion.allCases)
    func changes(_ version: TLSVersion) async throws {
        // A length that grew makes the client wait for bytes that never arrive.
        let clocks = Timeouts.patient(
            connect: .milliseconds(500), head: .milliseconds(500), idle: .milliseconds(500))
        try await withRelay(version, clocks) { session, relay in
            var rejections = 0
            for offset in stride(from: 0, to: 1200, by: 7) {
                relay.use(.flip(offset))
                switch try await outcome(session, relay) {
                case .success(let text): #expect(text == "good", "byte \(offset)")
                case .failure(let error):
                    rejections += 1
                    let codes: [HTTPError.Code] = [
                        .tlsFailed, .emptyResponse, .truncated, .connectionLost, .timedOut,
                    ]
                    #expect(codes.contains(error.code), "byte \(offset): \(error)")
                }
            }
            #expect(rejections > 50)
            relay.use(.none)
            let unhurried = session.with { $0.timeouts = .patient() }
            #expect(try await outcome(unhurried, relay).get() == "good")
        }
    }
}
