/// The Punycode of Unicode labels: letters, digits and hyphens (RFC 3492), without the `xn--` prefix.
package enum Punycode {
    private static let base = 36
    private static let smallestThreshold = 1
    private static let largestThreshold = 26
    private static let skew = 38
    private static let damp = 700
    private static let initialBias = 72
    private static let initialCode = 0x80

    /// Returns the encoded label; `nil` for more scalars than fit into the 63 characters of a label, because the work
    /// is quadratic in their number.
    package static func encoded(_ scalars: [Unicode.Scalar]) -> String? {
        guard scalars.count < 63 else { return nil }
        var output: [UInt8] = scalars.filter(\.isASCII).map { UInt8(truncatingIfNeeded: $0.value) }
        let basicCount = output.count
        if basicCount > 0 { output.append(UInt8(ascii: "-")) }
        var code = initialCode
        var delta = 0
        var bias = initialBias
        var handled = basicCount
        while handled < scalars.count {
            let next = scalars.reduce(0x110000) { least, scalar in
                Int(scalar.value) >= code ? min(least, Int(scalar.value)) : least
            }
            delta += (next - code) * (handled + 1)
            code = next
            for scalar in scalars {
                if Int(scalar.value) < code { delta += 1 }
                guard Int(scalar.value) == code else { continue }
                append(delta, bias: bias, to: &output)
                bias = adapted(delta, count: handled + 1, isFirst: handled == basicCount)
                delta = 0
                handled += 1
            }
            delta += 1
            code += 1
        }
        return String(decoding: output, as: UTF8.self)
    }

    /// A sum above all valid ones: a label has at most 63 scalars. Below it the decoder's calculations cannot overflow.
    private static let indexLimit = 0x11_0000 * 64

    /// Returns the decoded label; `nil` if it is malformed, overflows or contains a number that is not a scalar.
    package static func decoded(_ text: some Collection<UInt8>) -> [Unicode.Scalar]? {
        let bytes = Array(text)
        guard bytes.count <= 63 else { return nil }
        let delimiter = bytes.lastIndex(of: UInt8(ascii: "-"))
        let basic = bytes[..<(delimiter ?? 0)]
        guard basic.allSatisfy({ $0 < 0x80 }) else { return nil }
        var output = basic.map { Unicode.Scalar($0) }
        var position = delimiter.map { $0 + 1 } ?? 0
        var code = initialCode
        var index = 0
        var bias = initialBias
        while position < bytes.count {
            let start = index
            var weight = 1
            var reached = base
            while true {
                guard position < bytes.count, let digit = digit(bytes[position]) else { return nil }
                position += 1
                let (product, overflow) = digit.multipliedReportingOverflow(by: weight)
                guard !overflow, product <= indexLimit - index else { return nil }
                index += product
                let threshold = threshold(reached, bias: bias)
                if digit < threshold { break }
                let (heavier, tooHeavy) = weight.multipliedReportingOverflow(by: base - threshold)
                guard !tooHeavy else { return nil }
                weight = heavier
                reached += base
            }
            bias = adapted(index - start, count: output.count + 1, isFirst: start == 0)
            code += index / (output.count + 1)
            index %= output.count + 1
            guard code <= 0x10FFFF, let scalar = Unicode.Scalar(UInt32(code)) else { return nil }
            output.insert(scalar, at: index)
            index += 1
        }
        return output
    }

    private static func append(_ delta: Int, bias: Int, to output: inout [UInt8]) {
        var rest = delta
        var reached = base
        while true {
            let threshold = threshold(reached, bias: bias)
            if rest < threshold { break }
            output.append(alphabet[threshold + (rest - threshold) % (base - threshold)])
            rest = (rest - threshold) / (base - threshold)
            reached += base
        }
        output.append(alphabet[rest])
    }

    private static func threshold(_ reached: Int, bias: Int) -> Int {
        min(max(reached - bias, smallestThreshold), largestThreshold)
    }

    private static func adapted(_ delta: Int, count: Int, isFirst: Bool) -> Int {
        var delta = isFirst ? delta / damp : delta / 2
        delta += delta / count
        var steps = 0
        while delta > (base - smallestThreshold) * largestThreshold / 2 {
            delta /= base - smallestThreshold
            steps += base
        }
        return steps + (base - smallestThreshold + 1) * delta / (delta + skew)
    }

    private static let alphabet = Array("abcdefghijklmnopqrstuvwxyz0123456789".utf8)

    private static func digit(_ byte: UInt8) -> Int? {
        alphabet.firstIndex(of: (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte)
    }
}
