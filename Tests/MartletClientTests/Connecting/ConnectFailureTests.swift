import Martlet
import Testing

@Suite("What counts as a connection that could not be opened")
struct ConnectFailureTests {
    // An alert amid a response did, though the server may have acted on the request.
    @Test("TLS that fails behind the request is no failure to connect")
    func tls() {
        #expect(HTTPError(.tlsFailed, phase: .tlsHandshake, message: "x").isConnectFailure)
        for phase in [HTTPError.Phase.sending, .awaitingHead, .receivingBody] {
            #expect(!HTTPError(.tlsFailed, phase: phase, message: "x", wasSent: true).isConnectFailure)
        }
        // A request before it was sent, and a redirect led here.
        #expect(HTTPError(.tlsFailed, phase: .tlsHandshake, message: "x", wasSent: true).isConnectFailure)
        #expect(HTTPError(.connectFailed, phase: .connecting, message: "x").isConnectFailure)
    }
}
