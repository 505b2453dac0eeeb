/// The conversion of a host name to ASCII: UTS #46 §4, non-transitional, with the settings of the WHATWG URL Standard.
///
/// CheckHyphens and UseSTD3ASCIIRules are off, CheckBidi and CheckJoiners are on. The caller checks the lengths of the
/// labels and the name. Everything that the rules do not allow is an error.
package struct DomainName {
    /// A scalar of the decoded host, with the position of the byte at which it was written.
    package struct Placed {
        let scalar: Unicode.Scalar
        let position: Int

        package init(scalar: Unicode.Scalar, position: Int) { (self.scalar, self.position) = (scalar, position) }
    }

    /// The name in A-labels, in lower case.
    package let ascii: String

    private static let prefix = Array("xn--".unicodeScalars)

    /// Converts a name to A-labels.
    package init(scalars: [Placed]) throws(RawURLParseError) {
        let mapped = try DomainName.mapped(scalars)
        var labels: [Label] = []
        for part in mapped.split(omittingEmptySubsequences: false, whereSeparator: { $0.scalar == "." }) {
            let position = part.first?.position ?? scalars.first?.position ?? 0
            labels.append(try Label(IDNATables.composition.normalized(part.map(\.scalar)), at: position))
        }
        if labels.contains(where: { BidiRule.concerns($0.unicode) }) {
            for label in labels where !BidiRule.allows(label.unicode) {
                throw RawURLParseError(
                    .invalidHostName, at: label.position, "a label mixes writing directions against the Bidi rule")
            }
        }
        ascii = labels.map(\.ascii).joined(separator: ".")
    }

    /// Maps the name (step 1): each scalar is preserved, replaced or removed.
    private static func mapped(_ scalars: [Placed]) throws(RawURLParseError) -> [Placed] {
        var output: [Placed] = []
        output.reserveCapacity(scalars.count)
        for placed in scalars {
            guard let replacement = IDNATables.mapping.replacement(of: placed.scalar) else {
                throw RawURLParseError(
                    .forbiddenHostCharacter, at: placed.position,
                    "U+\(hexadecimal(placed.scalar)) is not allowed in a host name")
            }
            output += replacement.map { Placed(scalar: $0, position: placed.position) }
        }
        return output
    }

    private static func hexadecimal(_ scalar: Unicode.Scalar) -> String {
        let digits = String(scalar.value, radix: 16, uppercase: true)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }

    /// One label in both its forms, validated.
    private struct Label {
        let unicode: [Unicode.Scalar]
        let ascii: String
        let position: Int

        init(_ scalars: [Unicode.Scalar], at position: Int) throws(RawURLParseError) {
            self.position = position
            let isEncoded = scalars.starts(with: DomainName.prefix)
            unicode = isEncoded ? try Label.decoded(scalars, at: position) : scalars
            if isEncoded || !scalars.allSatisfy(\.isASCII) { try Label.validate(unicode, at: position) }
            if isEncoded || scalars.allSatisfy(\.isASCII) {
                ascii = String(String.UnicodeScalarView(scalars))
                return
            }
            guard let encoded = Punycode.encoded(scalars) else {
                throw RawURLParseError(.hostNameTooLong, at: position, "a host name label is longer than 63 bytes")
            }
            ascii = "xn--" + encoded
        }

        /// Decodes an `xn--` label. Encoding the result must restore the label.
        private static func decoded(_ scalars: [Unicode.Scalar], at position: Int) throws(RawURLParseError) -> [Unicode
            .Scalar]
        {
            guard scalars.count <= 63 else {
                throw RawURLParseError(.hostNameTooLong, at: position, "a host name label is longer than 63 bytes")
            }
            let rest = scalars.dropFirst(DomainName.prefix.count)
            guard rest.allSatisfy(\.isASCII),
                let decoded = Punycode.decoded(rest.map { UInt8(truncatingIfNeeded: $0.value) }),
                !decoded.allSatisfy(\.isASCII), Punycode.encoded(decoded)?.unicodeScalars.elementsEqual(rest) == true
            else { throw RawURLParseError(.invalidHostName, at: position, "an xn-- label is not valid Punycode") }
            return decoded
        }

        /// Checks the validity criteria (UTS #46 §4.1), except Bidi.
        private static func validate(_ label: [Unicode.Scalar], at position: Int) throws(RawURLParseError) {
            guard !label.starts(with: DomainName.prefix) else {
                throw RawURLParseError(.invalidHostName, at: position, "an xn-- label is not in its canonical form")
            }
            switch label.first?.properties.generalCategory {
            case nil, .nonspacingMark, .spacingMark, .enclosingMark:
                throw RawURLParseError(.invalidHostName, at: position, "a label begins with a combining mark")
            default: break
            }
            guard label.allSatisfy({ IDNATables.mapping.replacement(of: $0) == [$0] }), !label.contains("."),
                IDNATables.composition.normalized(label) == label
            else {
                throw RawURLParseError(
                    .invalidHostName, at: position, "a label contains a character that mapping would have replaced")
            }
            guard JoinerRule.allows(label) else {
                throw RawURLParseError(
                    .invalidHostName, at: position, "a zero-width joiner is at a position where it has no effect")
            }
        }
    }
}

/// The labels that are allowed in a name that contains right-to-left text (RFC 5893 §2).
enum BidiRule {
    /// The bidirectional classes that the rule distinguishes.
    enum BidiClass: Int {
        case leftToRight = 1
        /// R and AL, the right-to-left classes.
        case rightToLeft
        case arabicNumber
        case europeanNumber
        /// ES, CS, ET, ON and BN, the neutral classes.
        case neutral
        case nonspacingMark
    }

    /// Whether a label makes the whole name bidirectional.
    static func concerns(_ label: [Unicode.Scalar]) -> Bool {
        label.contains {
            switch IDNATables.bidiClasses[$0] {
            case .rightToLeft, .arabicNumber: true
            default: false
            }
        }
    }

    /// Whether a label of a bidirectional name meets the six conditions.
    static func allows(_ label: [Unicode.Scalar]) -> Bool {
        let classes = label.map { IDNATables.bidiClasses[$0] }
        guard let first = classes.first, !classes.contains(nil) else { return classes.isEmpty }
        let last = classes.last { $0 != .nonspacingMark } ?? nil
        switch first {
        case .leftToRight: return (last == .leftToRight || last == .europeanNumber) && !concerns(label)
        case .rightToLeft:
            return last != .neutral && !classes.contains(.leftToRight)
                && !(classes.contains(.europeanNumber) && classes.contains(.arabicNumber))
        default: return false
        }
    }
}

/// The positions at which the two zero-width joiners are allowed (ContextJ: RFC 5892, appendix A.1 and A.2).
enum JoinerRule {
    /// The joining types that the rule distinguishes; other characters do not join.
    enum JoiningType: Int {
        case transparent = 1
        case left
        case right
        case dual
    }

    /// Whether each joiner of a label is at a position where it changes the appearance of the label.
    static func allows(_ label: [Unicode.Scalar]) -> Bool {
        for (index, scalar) in label.enumerated() where scalar.value == 0x200C || scalar.value == 0x200D {
            if index > 0, label[index - 1].properties.canonicalCombiningClass == .virama { continue }
            // Only the non-joiner has a second allowed position: between letters that would join without it.
            guard scalar.value == 0x200C else { return false }
            let before = nearestType(in: label[..<index].reversed())
            let after = nearestType(in: label[(index + 1)...])
            guard before == .left || before == .dual, after == .right || after == .dual else { return false }
        }
        return true
    }

    /// Returns the type of the first scalar that is not transparent.
    private static func nearestType(in scalars: some Sequence<Unicode.Scalar>) -> JoiningType? {
        scalars.lazy.map { IDNATables.joiningTypes[$0] }.first { $0 != .transparent } ?? nil
    }
}
