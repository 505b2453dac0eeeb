import Martlet
import MartletTesting

/// The steps of what goes wrong, and must be told as it is.
enum DemoFaults {
    static let steps = [
        Demo.Step(
            title: "Refuse certificates of the wrong name, of the past, and of a stranger", run: certificates),
        Demo.Step(title: "Tell a truncated body, a reset and a silent server apart", run: faults),
    ]

    private static func certificates(_ stage: DemoStage) async throws -> [String] {
        var lines: [String] = []
        for tls in [OriginTLS.wrongName, .expired, .unknownAuthority] {
            lines.append(
                try await TestOrigin.withOrigin(.tls(tls), handler: .fixed(.text("never seen"))) { origin in
                    let session = ProgramSessions.shared.make(DemoStage.configuration(trusting: origin))
                    let error = try await failure { try await session.get(origin.url("/")) }
                    try DemoFailure.check(error.code == .tlsFailed && !error.wasSent, "the error is \(error)")
                    try DemoFailure.check(
                        matches((error.underlying as? TLSError)?.kind, tls),
                        "the reason given is \(error.message)")
                    try DemoFailure.check(origin.requests.isEmpty, "the origin was sent a request")
                    return "refused: \(error.message)"
                })
        }
        return lines
    }

    private static func matches(_ kind: TLSError.Kind?, _ tls: OriginTLS) -> Bool {
        switch (kind, tls) {
        case (.nameMismatch, .wrongName), (.expired, .expired), (.unknownAuthority, .unknownAuthority): true
        default: false
        }
    }

    private static func faults(_ stage: DemoStage) async throws -> [String] {
        var short = RequestOptions()
        short.timeouts = Timeouts(connect: .seconds(120), head: .milliseconds(300))
        let cases: [(String, HTTPError.Code)] = [
            ("/truncate/1000", .truncated), ("/truncate/1000?chunked", .truncated),
            ("/reset/1000", .connectionLost),
            ("/stall", .timedOut),
        ]
        var lines: [String] = []
        for (path, code) in cases {
            // The clock is for the one that says nothing: the others are slow on a slow machine.
            let options = code == .timedOut ? short : RequestOptions()
            let error = try await failure {
                try await stage.session.get(stage.origin.url(path), options: options)
            }
            try DemoFailure.check(error.code == code, "\(path): the error is \(error)")
            try DemoFailure.check(code != .timedOut || error.clock == .head, "\(path): the clock is wrong")
            lines.append("\(path): \(error.code.rawValue): \(error.message)")
        }
        return lines
    }

    /// The error of a call that must fail.
    private static func failure(_ call: () async throws -> HTTPExchange) async throws -> HTTPError {
        do {
            let exchange = try await call()
            throw DemoFailure("it succeeded, with status \(exchange.response.status.code)")
        } catch let error as HTTPError {
            return error
        }
    }
}
