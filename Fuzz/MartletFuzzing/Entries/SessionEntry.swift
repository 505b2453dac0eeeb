import MartletCore
import MartletTransport

extension FuzzEntry {
    /// A whole session: three calls in turn to a ``ScriptedPeer`` that speaks the payload.
    ///
    /// Control 0: the call (`H` HEAD, `P` POST, `L` POST of a body of unknown length, `S` a stream left after
    /// its first piece, others GET). Control 1: bit 0 hands bodies over as they come, bit 1 undoes no coding,
    /// bit 2 makes limits small, bit 3 speaks HTTP/1.0. Control 2: `1` cuts streams, `2` resets them, others
    /// end them in order.
    ///
    /// Each call ends, with a complete answer or an error of the library's own, and the same whether bytes
    /// come at once or in pieces. No clock runs out, requests on the wire are whole, and behind the session
    /// no connection is open.
    static let session = FuzzEntry("session") { (bytes) async throws(FuzzFinding) in
        let input = FuzzInput(bytes)
        let sizes = input.pieceSizes(from: 3)
        let whole = try await SessionReading.of(input, isPiecemeal: false, pieceSizes: sizes)
        let pieces = try await SessionReading.of(input, isPiecemeal: true, pieceSizes: sizes)
        // What of a body has come when it is left depends on how it comes, and so does whether its connection
        // is kept. An answer that comes before the request is sent may end it, and when it comes depends on
        // both tasks.
        let call = SessionCall(input)
        if call.leavesBody || call.hasBody { return }
        try require(pieces == whole, "\(pieces) in pieces of \(sizes), and \(whole) at once")
    }
}
