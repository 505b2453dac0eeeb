import MartletTestSupport
import Testing

@testable import MartletTransport

@Suite("Keys in DER")
struct PEMParserTests {
    // Every fourth small key contains the byte of a hyphen and was once treated as text.
    @Test("A small DER key is parsed as DER, whatever its bytes are")
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
        // Half of all byte strings are points of the curve, and parsing a key does not check that.
        #expect(PEMParser.publicKey(in: open + key) != nil)
    }

    @Test("Text that begins like a DER sequence is parsed as text")
    func text() throws {
        let issued = try Certificates.authority.get().issue(.client("caller"))
        let text = "0) a note\n" + issued.privateKeyPEM
        guard case .key = PEMParser.privateKey(in: Array(text.utf8), passphrase: nil) else {
            Issue.record("no private key")
            return
        }
    }
}
