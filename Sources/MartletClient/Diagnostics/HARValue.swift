/// A value of a HAR log, and so of JSON (RFC 8259).
package indirect enum HARValue: Sendable {
    /// A text.
    case text(String)
    /// A whole number.
    case number(Int64)
    /// A number of milliseconds.
    case milliseconds(Double)
    /// True or false.
    case flag(Bool)
    /// Values in order.
    case list([HARValue])
    /// Named values, in this order.
    case members([(name: String, value: HARValue)])

    /// Appends the value as JSON.
    package func write(to output: inout [UInt8]) {
        switch self {
        case .text(let text): HARValue.write(text.utf8, to: &output)
        case .number(let number): output += "\(number)".utf8
        case .milliseconds(let number):
            // To the microsecond; there is no JSON for what is not finite.
            let rounded = number.isFinite ? (number * 1000).rounded() / 1000 : 0
            output += "\(rounded)".utf8
        case .flag(let flag): output += (flag ? "true" : "false").utf8
        case .list(let values):
            output.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                value.write(to: &output)
            }
            output.append(UInt8(ascii: "]"))
        case .members(let members):
            output.append(UInt8(ascii: "{"))
            for (index, member) in members.enumerated() {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                HARValue.write(member.name.utf8, to: &output)
                output.append(UInt8(ascii: ":"))
                member.value.write(to: &output)
            }
            output.append(UInt8(ascii: "}"))
        }
    }

    /// Appends bytes as a string of JSON, whatever they are: what is no UTF-8 (a surrogate alone is none) becomes U+FFFD, and
    /// what would end the string, a line of a script or an element of a page is escaped.
    package static func write(_ bytes: some Collection<UInt8>, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "\""))
        for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
            switch scalar {
            case "\"": output += "\\\"".utf8
            case "\\": output += "\\\\".utf8
            case "\n": output += "\\n".utf8
            case "\r": output += "\\r".utf8
            case "\t": output += "\\t".utf8
            case "\u{0}"..<" ", "\u{7F}", "\u{2028}", "\u{2029}", "<": escape(scalar.value, to: &output)
            default: output += UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter
            }
        }
        output.append(UInt8(ascii: "\""))
    }

    private static func escape(_ value: UInt32, to output: inout [UInt8]) {
        let digits = Array("0123456789abcdef".utf8)
        output += "\\u".utf8
        for shift in [12, 8, 4, 0] as [UInt32] { output.append(digits[Int(value >> shift & 15)]) }
    }
}
