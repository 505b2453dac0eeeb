import MartletWebSocket
import Testing

@Suite("WebSocket: UTF-8 in pieces")
struct UTF8ValidatorTests {
    @Test("Each text is valid or not as the standard library says, however it is cut")
    func agreesWithTheStandardLibrary() {
        var texts: [[UInt8]] = [[], Array("Hello-µ@ßöäüàá-UTF-8!!".utf8), Array("κόσμε 😀 \u{10FFFF}".utf8)]
        for first in UInt8.min ... .max {
            texts.append([first])
            for second: UInt8 in [0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF] {
                texts.append([first, second])
                texts.append([first, second, 0x80])
                texts.append([first, second, 0x80, 0xBF])
                texts.append([0x41, first, second, 0xBF, 0x80, 0x42])
            }
        }
        for text in texts {
            let isValid = String(validating: text, as: UTF8.self) != nil
            for cut in 0...text.count {
                var validator = UTF8Validator()
                let accepted =
                    validator.accepts(Array(text[..<cut]).span) && validator.accepts(Array(text[cut...]).span)
                #expect((accepted && validator.isComplete) == isValid, "\(text) cut at \(cut)")
            }
        }
    }

    @Test(
        "The first byte that cannot be part of a character is an error",
        arguments: [
            ([0x80], 0), ([0xC0], 0), ([0xC1], 0), ([0xF5], 0), ([0xFF], 0), ([0xE0, 0x9F], 1), ([0xED, 0xA0], 1),
            ([0xF0, 0x8F], 1), ([0xF4, 0x90], 1), ([0xE2, 0x82, 0x41], 2), ([0x41, 0xC3, 0xC3], 2),
        ] as [([UInt8], Int)])
    func failsFast(_ bytes: [UInt8], _ index: Int) {
        var validator = UTF8Validator()
        let isValid = validator.accepts(Array(bytes[..<index]).span)
        let isStillValid = validator.accepts([bytes[index]].span)
        #expect(isValid && !isStillValid)
    }
}
