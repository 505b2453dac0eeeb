import MartletCaching
import MartletCore
import MartletDiagnostics
import MartletTransport
import MartletWire

/// The outcomes of three calls of a session.
struct SessionReading: Equatable {
    /// The outcome of a call.
    enum Outcome: Equatable {
        case answered(ResponseHead, interim: Int, body: [UInt8], trailers: FieldBlock?)
        case left
        case failed(HTTPError.Code, message: String)
    }

    private(set) var outcomes: [Outcome] = []

    /// Runs a session against the peer that the input describes.
    static func of(
        _ input: FuzzInput, isPiecemeal: Bool, pieceSizes: [Int]
    ) async throws(FuzzFinding) -> SessionReading {
        let end: ScriptedPeer.End =
            switch input[2] {
            case UInt8(ascii: "1"): .cut
            case UInt8(ascii: "2"): .reset
            default: .clean
            }
        let call = SessionCall(input)
        let conduct = ScriptedPeer.Conduct(
            isPiecemeal: isPiecemeal, takesPieces: isPiecemeal && call.hasBody, pieceSizes: pieceSizes,
            end: end)
        let peer = ScriptedPeer(input.payload, conduct: conduct)
        var reading = SessionReading()
        let session = HTTPSession(configuration: call.configuration(connectingTo: peer))
        for _ in 0..<3 { reading.outcomes.append(try await call.run(in: session)) }
        await session.finishAndInvalidate()
        try await checkEnd(session, peer)
        return reading
    }

    /// Checks that all connections are closed and that only requests were sent on them.
    private static func checkEnd(_ session: HTTPSession, _ peer: ScriptedPeer) async throws(FuzzFinding) {
        for stream in peer.streams {
            // A background task may still drain an abandoned body, which never takes long.
            let deadline = ContinuousClock.now + .seconds(300)
            while !stream.isClosed, ContinuousClock.now < deadline {
                try? await Task.sleep(for: .milliseconds(1))
            }
            try require(stream.isClosed, "a connection is still open after its session")
            let written = stream.written
            let sent = RequestReading(written, .whole(written.count), .default)
            if case .truncated = sent.error?.code { continue }
            try require(sent.error == nil, "what was sent is no request: \(String(describing: sent.error))")
        }
    }
}
