import MartletCore
import MartletTransport

extension FuzzEntry {
    /// Complete sessions: three consecutive calls to a ``ScriptedPeer`` that plays the payload.
    ///
    /// Control 0: the call (`H` HEAD, `P` POST, `L` POST of a body of unknown length, `S` a stream that is abandoned
    /// after its first piece, others GET). Control 1: bit 0 streams bodies, bit 1 disables content decoding, bit 2 sets
    /// small limits, and bit 3 selects HTTP/1.0. Control 2: `1` truncates streams, `2` resets them, and others end them
    /// cleanly.
    ///
    /// Each call ends with a complete response or an error of the library, and does not depend on how the bytes arrive.
    /// No timeout expires, requests on the wire are complete, and no connection stays open after the session.
    static let session = FuzzEntry("session") { (bytes) async throws(FuzzFinding) in
        let input = FuzzInput(bytes)
        let sizes = input.pieceSizes(from: 3)
        let whole = try await SessionReading.of(input, isPiecemeal: false, pieceSizes: sizes)
        let pieces = try await SessionReading.of(input, isPiecemeal: true, pieceSizes: sizes)
        // The received part of an abandoned body depends on how it arrives, and so does the reuse of its connection. A
        // response before the end of the request may end it, and its arrival depends on both tasks.
        let call = SessionCall(input)
        if call.leavesBody || call.hasBody { return }
        try require(pieces == whole, "\(pieces) in pieces of \(sizes), and \(whole) at once")
    }
}
