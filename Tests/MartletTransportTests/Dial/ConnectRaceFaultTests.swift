import Glibc
import Testing

@testable import MartletTransport

@Suite("Connect race: effect of a failure on the address")
struct ConnectRaceFaultTests {
    private func tls(_ kind: TLSError.Kind) -> TransportError {
        .tls(TLSError(kind, host: "a.example"))
    }

    @Test("A TLS alert about a single server continues the race with the next address", arguments: [10, 40, 80, 112])
    func troubled(number: Int) {
        let error = tls(.alert(number: number, text: ""))
        #expect(!ConnectRace.isFinal(error))
        #expect(ConnectRace.isFaultOfAddress(error))
    }

    @Test(
        "A TLS alert about certificates or versions ends the race and does not mark the address as failed",
        arguments: [42, 43, 44, 45, 46, 48, 49, 70, 71, 116, 120])
    func decisive(number: Int) {
        let error = tls(.alert(number: number, text: ""))
        #expect(ConnectRace.isFinal(error))
        #expect(!ConnectRace.isFaultOfAddress(error))
    }

    @Test("A failed or timed-out handshake marks the address as failed")
    func handshakes() {
        #expect(ConnectRace.isFaultOfAddress(tls(.handshake(reason: "garbage"))))
        #expect(ConnectRace.isFaultOfAddress(tls(.truncated)))
        #expect(ConnectRace.isFaultOfAddress(.system(SystemError(operation: "recv", code: 104))))
        #expect(ConnectRace.isFaultOfAddress(.closed))
        #expect(ConnectRace.isFaultOfAddress(.timedOut))
        #expect(ConnectRace.isFinal(.timedOut))
    }

    @Test(
        "A lack of resources on this machine does not mark the address as failed, other errors of the system do",
        arguments: [
            (EMFILE, false), (ENFILE, false), (ENOMEM, false), (ENOBUFS, false), (ECONNREFUSED, true),
            (ENETUNREACH, true), (EHOSTUNREACH, true), (EADDRNOTAVAIL, true), (EAFNOSUPPORT, true),
        ])
    func shortages(code: Int32, isFault: Bool) throws {
        let error = SystemError(operation: "socket", code: code)
        let failed = TransportError.connect([ConnectError(address: "127.0.0.1:80", error: error)])
        #expect(ConnectRace.isFaultOfAddress(failed) == isFault)
        #expect(ConnectRace.isFaultOfAddress(.system(error)) == isFault)
        var outcome = ConnectRace.Outcome()
        outcome.attemptFailed(try #require(SocketAddress(literal: "127.0.0.1", port: 80)), failed)
        #expect(outcome.failedAddresses.isEmpty == !isFault)
    }

    @Test("A rejected certificate and a cancelled dial do not mark the address as failed")
    func others() {
        #expect(!ConnectRace.isFaultOfAddress(tls(.expired)))
        #expect(!ConnectRace.isFaultOfAddress(tls(.clientCertificateRequired)))
        #expect(!ConnectRace.isFaultOfAddress(tls(.protocolVersion)))
        #expect(!ConnectRace.isFaultOfAddress(.interrupted))
    }
}
