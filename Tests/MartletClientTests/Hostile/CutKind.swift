import MartletCore
import MartletTesting

/// A way for a response to end early.
enum CutKind: CaseIterable, Sendable {
    case memoryEnd
    case memoryReset
    case plainEnd
    case plainReset
    case tlsEnd
    case tlsCut
    case tlsReset

    /// The single response of an honest connection.
    static let good = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ngood"

    var isSecure: Bool { self == .tlsEnd || self == .tlsCut || self == .tlsReset }
    var isReset: Bool { self == .memoryReset || self == .plainReset || self == .tlsReset }
    /// Whether the stream has an authenticated or graceful end.
    var isOrderly: Bool { !isReset && self != .tlsCut }

    /// The server's last script step.
    var step: ScriptStep {
        switch self {
        case .memoryEnd, .plainEnd, .tlsEnd: .close
        case .tlsCut: .closeWithoutNotify
        case .memoryReset, .plainReset, .tlsReset: .reset
        }
    }

    /// Runs a closure in a scene whose server plays a script on each connection.
    func withPeer(
        _ scripts: [ServerScript], run body: (HostileScene) async throws -> Void
    ) async throws {
        var configuration = SessionConfiguration.patient
        configuration.timeouts.total = TestTimeouts.long
        switch self {
        case .memoryEnd, .memoryReset:
            let mock = MockTransport(scripts: scripts)
            configuration.connector = mock
            try await body(
                HostileScene(
                    session: HTTPSession(configuration: configuration), base: "http://mock.example",
                    recorder: mock.recorder, signals: mock.signals, honestBase: "http://mock.example"))
            await mock.stop()
        case .plainEnd, .plainReset, .tlsEnd, .tlsCut, .tlsReset:
            let origin = try await TestOrigin.start(isSecure ? .tls() : .plain, scripts: scripts)
            if let authority = origin.authorityPEM { configuration.tls.trust = .only(.text(authority)) }
            try await body(
                HostileScene(
                    session: HTTPSession(configuration: configuration), base: origin.base,
                    recorder: origin.recorder, signals: origin.signals, honestBase: origin.base,
                    ports: [origin.port]))
            await origin.stop()
        }
    }
}
