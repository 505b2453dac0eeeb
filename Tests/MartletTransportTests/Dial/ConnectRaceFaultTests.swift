import Testing

@testable import MartletTransport

@Suite("Connect race: what a failure says of the address")
struct ConnectRaceFaultTests {
    private func tls(_ kind: TLSError.Kind) -> TransportError {
        .tls(TLSError(kind, host: "a.example"))
    }

    @Test("Alerts that tell of trouble at one place let the race go on", arguments: [10, 40, 80, 112])
    func troubled(number: Int) {
        let error = tls(.alert(number: number, text: ""))
        #expect(!ConnectRace.isFinal(error))
        #expect(ConnectRace.isFaultOfAddress(error))
    }

    @Test(
        "Alerts about certificates or versions end it, and say nothing of the address",
        arguments: [42, 43, 44, 45, 46, 48, 49, 70, 71, 116, 120])
    func decisive(number: Int) {
        let error = tls(.alert(number: number, text: ""))
        #expect(ConnectRace.isFinal(error))
        #expect(!ConnectRace.isFaultOfAddress(error))
    }

    @Test("A handshake that came to nothing, or took too long, is the address's fault")
    func handshakes() {
        #expect(ConnectRace.isFaultOfAddress(tls(.handshake(reason: "garbage"))))
        #expect(ConnectRace.isFaultOfAddress(tls(.truncated)))
        #expect(ConnectRace.isFaultOfAddress(.system(SystemError(operation: "recv", code: 104))))
        #expect(ConnectRace.isFaultOfAddress(.closed))
        #expect(ConnectRace.isFaultOfAddress(.timedOut))
        #expect(ConnectRace.isFinal(.timedOut))
    }

    @Test("A refused certificate and a dial that was cancelled are not")
    func others() {
        #expect(!ConnectRace.isFaultOfAddress(tls(.expired)))
        #expect(!ConnectRace.isFaultOfAddress(tls(.clientCertificateRequired)))
        #expect(!ConnectRace.isFaultOfAddress(tls(.protocolVersion)))
        #expect(!ConnectRace.isFaultOfAddress(.interrupted))
    }
}
