/// A host name on its way to ASCII: UTS #46 §4, non-transitional, with the settings of the WHATWG URL
/// Standard.
///
/// CheckHyphens and UseSTD3ASCIIRules are off, CheckBidi and CheckJoiners on; label and name lengths are the
/// caller's to check. Anything the rules do not let through is an error: a name is never half-converted.
package struct DomainName {
    /// A scalar of the decoded host and the byte it was written at.
    package struct Placed {
        let scalar: Unicode.Scalar
        let position: Int

        package init(scalar: Unicode.Scalar, position: Int) {
            self.scalar = scalar
            self.position = position
        }
    }

    /// The name in A-labels, lower case.
    package let ascii: String

    private static let prefix = Array("xn--".unicodeScalars)

    /// Converts a name.
    package init(scalars: [Placed]) throws(URLFault) {
        let mapped = try DomainName.mapped(scalars)
        var labels: [Label] = []
        for part in mapped.split(omittingEmptySubsequences: false, whereSeparator: { $0.scalar == "." }) {
            let position = part.first?.position ?? scalars.first?.position ?? 0
            labels.append(try Label(IDNATables.compositionTable.normalized(part.map(\.scalar)), at: position))
        }
        if labels.contains(where: { BidiRule.concerns($0.unicode) }) {
            for label in labels where !BidiRule.allows(label.unicode) {
                throw URLFault(
                    .invalidHostName, at: label.position,
                    "a label mixes writing directions against the Bidi rule")
            }
        }
        ascii = labels.map(\.ascii).joined(separator: ".")
    }

    /// Step 1: every scalar kept, replaced or dropped.
    private static func mapped(_ scalars: [Placed]) throws(URLFault) -> [Placed] {
        let table = IDNATables.mappingTable
        var output: [Placed] = []
        output.reserveCapacity(scalars.count)
        for placed in scalars {
            switch table[placed.scalar] {
            case .valid: output.append(placed)
            case .ignored: continue
            case .mapped(let replacement):
                output += replacement.map { Placed(scalar: $0, position: placed.position) }
            case .disallowed:
                throw URLFault(
                    .forbiddenHostCharacter, at: placed.position,
                    "U+\(hexadecimal(placed.scalar)) is not allowed in a host name")
            }
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

        init(_ scalars: [Unicode.Scalar], at position: Int) throws(URLFault) {
            self.position = position
            if scalars.starts(with: DomainName.prefix) {
                ascii = String(String.UnicodeScalarView(scalars))
                unicode = try Label.decoded(scalars, at: position)
                try Label.validate(unicode, at: position)
                return
            }
            unicode = scalars
            if scalars.allSatisfy(\.isASCII) {
                ascii = String(String.UnicodeScalarView(scalars))
                return
            }
            try Label.validate(scalars, at: position)
            guard let encoded = Punycode.encoded(scalars) else {
                throw URLFault(.hostNameTooLong, at: position, "a label of the host name is longer than 63")
            }
            ascii = "xn--" + encoded
        }

        /// What an `xn--` label stands for; it must be what encoding gives back.
        private static func decoded(
            _ scalars: [Unicode.Scalar], at position: Int
        ) throws(URLFault) -> [Unicode.Scalar] {
            guard scalars.count <= 63 else {
                throw URLFault(.hostNameTooLong, at: position, "a label of the host name is longer than 63")
            }
            let rest = scalars.dropFirst(DomainName.prefix.count)
            guard rest.allSatisfy(\.isASCII),
                let decoded = Punycode.decoded(rest.map { UInt8(truncatingIfNeeded: $0.value) }),
                !decoded.allSatisfy(\.isASCII),
                Punycode.encoded(decoded)?.unicodeScalars.elementsEqual(rest) == true
            else { throw URLFault(.invalidHostName, at: position, "an xn-- label is not valid Punycode") }
            return decoded
        }

        /// The validity criteria (UTS #46 §4.1), Bidi apart.
        private static func validate(_ label: [Unicode.Scalar], at position: Int) throws(URLFault) {
            guard !label.starts(with: DomainName.prefix) else {
                throw URLFault(.invalidHostName, at: position, "an xn-- label stands for another one")
            }
            guard let first = label.first, IDNATables.markTable[first] == 0 else {
                throw URLFault(.invalidHostName, at: position, "a label begins with a combining mark")
            }
            let table = IDNATables.mappingTable
            guard label.allSatisfy({ table[$0] == .valid }), !label.contains("."),
                IDNATables.compositionTable.normalized(label) == label
            else {
                throw URLFault(
                    .invalidHostName, at: position,
                    "a label holds what would have been mapped to something else")
            }
            guard JoinerRule.allows(label) else {
                throw URLFault(
                    .invalidHostName, at: position, "a zero-width joiner stands where it joins nothing")
            }
        }
    }
}

/// Which labels may stand in a name that holds right-to-left text (RFC 5893 §2).
enum BidiRule {
    /// The bidirectional classes the rule names.
    enum BidiClass: UInt8 {
        case leftToRight = 1
        case rightToLeft
        case arabicLetter
        case arabicNumber
        case europeanNumber
        case europeanSeparator
        case commonSeparator
        case europeanTerminator
        case otherNeutral
        case boundaryNeutral
        case nonspacingMark
    }

    /// Whether a label makes the whole name a bidirectional one.
    static func concerns(_ label: [Unicode.Scalar]) -> Bool {
        label.contains { scalar in
            switch bidiClass(scalar) {
            case .rightToLeft, .arabicLetter, .arabicNumber: true
            default: false
            }
        }
    }

    /// Whether a label of a bidirectional name keeps the six conditions.
    static func allows(_ label: [Unicode.Scalar]) -> Bool {
        let classes = label.map(bidiClass)
        guard let first = classes.first, !classes.contains(nil) else { return classes.isEmpty }
        let last = classes.last { $0 != .nonspacingMark } ?? nil
        switch first {
        case .leftToRight:
            guard last == .leftToRight || last == .europeanNumber else { return false }
            return classes.allSatisfy { $0 != .rightToLeft && $0 != .arabicLetter && $0 != .arabicNumber }
        case .rightToLeft, .arabicLetter:
            switch last {
            case .rightToLeft, .arabicLetter, .europeanNumber, .arabicNumber: break
            default: return false
            }
            guard !(classes.contains(.europeanNumber) && classes.contains(.arabicNumber)) else {
                return false
            }
            return !classes.contains(.leftToRight)
        default: return false
        }
    }

    private static func bidiClass(_ scalar: Unicode.Scalar) -> BidiClass? {
        BidiClass(rawValue: IDNATables.bidiClassTable[scalar])
    }
}

/// Where the two zero-width joiners may stand (ContextJ: RFC 5892, appendix A.1 and A.2).
enum JoinerRule {
    /// The joining types the rule asks about; the rest do not join.
    enum JoiningType: UInt8 {
        case transparent = 1
        case left = 2
        case right = 3
        case dual = 4
    }

    private static let virama: UInt8 = 9

    /// Whether every joiner of a label stands where it changes how the label looks.
    static func allows(_ label: [Unicode.Scalar]) -> Bool {
        for (index, scalar) in label.enumerated() where scalar.value == 0x200C || scalar.value == 0x200D {
            if index > 0, IDNATables.combiningClassTable[label[index - 1]] == virama { continue }
            // Only the non-joiner has a second place: between letters that would join without it.
            guard scalar.value == 0x200C else { return false }
            let before = nearestType(in: label[..<index].reversed())
            let after = nearestType(in: label[(index + 1)...])
            guard before == .left || before == .dual, after == .right || after == .dual else { return false }
        }
        return true
    }

    /// The type of the first scalar that is not transparent.
    private static func nearestType(in scalars: some Sequence<Unicode.Scalar>) -> JoiningType? {
        for scalar in scalars {
            let type = JoiningType(rawValue: IDNATables.joiningTypeTable[scalar])
            if type != .transparent { return type }
        }
        return nil
    }
}
