import MartletTestSupport
import Testing

@testable import MartletTransport

@Suite("Keys in DER")
struct PEMParserTests {
    // Every fourth small key has the byte of a hyphen somewhere, and was taken for a text.
    @Test("A small key in DER is read as such, whatever bytes are in it")
    func hyphens() {
        let key = [UInt8](repeating: UInt8(ascii: "-"), count: 32)
        let secret: [UInt8] = [
            0x30, 0x2E, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
        ]
        guard case .key = PEMParser.privateKey(in: secret + key, passphrase: nil) else {
            Issue.record("no private key")
            return
        }
        let open: [UInt8] = [0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00]
        // Half of all bytes are points of the curve, which reading a key does not ask about.
        #expect(PEMParser.publicKey(in: open + key) != nil)
    }

    @Test("A text that begins as a sequence does is read as one")
    func text() throws {
        let issued = try Certificates.authority.get().issue(.client("caller"))
        let text = "0) a note\n" + issued.privateKeyPEM
        guard case .key = PEMParser.privateKey(in: Array(text.utf8), passphrase: nil) else {
            Issue.record("no private key")
            return
        }
    }
}
