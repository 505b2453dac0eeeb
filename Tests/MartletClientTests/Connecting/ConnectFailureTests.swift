import Martlet
import Testing

@Suite("Connect failures")
struct ConnectFailureTests {
    // An alert during a response is not a connect failure: the server may have acted on the request.
    @Test("A TLS error after the request was sent does not count as a connect failure")
    func tls() {
        #expect(HTTPError(.tlsFailed, phase: .tlsHandshake, message: "x").isConnectFailure)
        for phase in [HTTPError.Phase.sending, .awaitingHead, .receivingBody] {
            #expect(!HTTPError(.tlsFailed, phase: phase, message: "x", wasSent: true).isConnectFailure)
        }
        // The earlier request of a redirect was sent, but the one that failed was not.
        #expect(HTTPError(.tlsFailed, phase: .tlsHandshake, message: "x", wasSent: true).isConnectFailure)
        #expect(HTTPError(.connectFailed, phase: .connecting, message: "x").isConnectFailure)
    }
}
