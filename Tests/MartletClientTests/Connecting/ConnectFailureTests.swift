import Martlet
import Testing

@Suite("What counts as a connection that could not be opened")
struct ConnectFailureTests {
    // An alert amid a response did, though the server may have acted on the request.
    @Test("TLS that fails behind the request is no failure to connect")
    func tls() {
        #expect(HTTPError(.tlsFailed, phase: .securing, message: "x").isConnectFailure)
        #expect(!HTTPError(.tlsFailed, phase: .awaitingHead, message: "x", wasSent: true).isConnectFailure)
        #expect(HTTPError(.connectFailed, phase: .connecting, message: "x").isConnectFailure)
    }
}
