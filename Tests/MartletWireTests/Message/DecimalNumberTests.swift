import MartletWire
import Testing

@Suite("Decimal numbers")
struct DecimalNumberTests {
    private func number(_ text: String) -> DecimalNumber { DecimalNumber(Array(text.utf8)[...]) }

    @Test(
        "Digits are parsed as a number up to 2^63 − 1",
        arguments: [("0", 0), ("007", 7), ("9223372036854775807", UInt64(Int64.max))])
    func value(text: String, expected: UInt64) {
        #expect(number(text) == .value(expected))
        #expect(number(text).exactValue == expected)
    }

    @Test(
        "A larger number is an overflow, however many digits it has",
        arguments: ["9223372036854775808", "18446744073709551616", "36893488147419103232"])
    func overflow(text: String) {
        #expect(number(text) == .overflow)
        #expect(number(text + text).exactValue == nil)
    }

    @Test(
        "Text other than digits is not a number, even after an overflow",
        arguments: ["", "+1", "-1", " 1", "1 ", "1.0", "0x1", "99999999999999999999x"])
    func invalid(text: String) {
        #expect(number(text) == .invalid)
    }

    @Test("Each hexadecimal digit has its value, and all other bytes have none")
    func hexDigits() {
        for byte in UInt8.min...UInt8.max {
            let expected = UInt64(String(UnicodeScalar(byte)), radix: 16)
            #expect(ByteClass.hexDigit(byte) == (byte < 0x80 ? expected : nil))
            #expect(
                ByteClass.digit(byte).map { UInt64($0) } == ((0x30...0x39).contains(byte) ? expected : nil))
        }
    }
}
