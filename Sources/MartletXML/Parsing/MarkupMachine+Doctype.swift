extension MarkupMachine {
    private static let doctypeWord = Array("OCTYPE".utf8)

    /// Begins a document type behind `<!D`.
    mutating func beginDoctype() throws(XMLError) {
        guard doctypeRule != .refuse else {
            throw fault(.doctypeRefused, "a document type is not accepted")
        }
        guard !hasRoot, doctype == nil else {
            throw fault(
                .malformedMarkup, "a document type that is not before the root element, or a second one")
        }
        matched = 0
        doctypeOffset = position.byteOffset
        state = .doctypeOpen
    }

    /// `<!DOCTYPE name PUBLIC "…" "…"` (§2.8, §4.2.2).
    mutating func takeDoctype(_ code: UInt32) throws(XMLError) {
        try checkDoctypeSize()
        let isSpace = XMLCharacter.isSpace(code)
        switch state {
        case .doctypeOpen:
            if matched < MarkupMachine.doctypeWord.count {
                _ = try match(code, MarkupMachine.doctypeWord, "<!DOCTYPE")
            } else {
                try requireSpace(isSpace)
                name.removeAll(keepingCapacity: true)
                state = .beforeDoctypeName
            }
        case .beforeDoctypeName:
            if isSpace { return }
            try beginName(code, "the name of a document type")
            state = .doctypeName
        case .doctypeName:
            if isSpace || code == 0x3E || code == 0x5B {
                let written = String(decoding: name, as: UTF8.self)
                let parts = written.utf8.split(separator: 0x3A, omittingEmptySubsequences: false)
                guard parts.count <= 2, parts.allSatisfy({ XMLCharacter.isPlainName(String($0) ?? "") })
                else {
                    throw fault(.invalidName, "\(written) is no name with a prefix")
                }
                doctype = XMLDoctype(name: written)
                state = .behindDoctypeName
                if !isSpace { try takeDoctypeEnd(code) }
            } else {
                try appendName(code, "the name of a document type")
            }
        case .behindDoctypeName:
            if isSpace { return }
            guard code == 0x53 || code == 0x50 else { return try takeDoctypeEnd(code) }
            name.removeAll(keepingCapacity: true)
            try appendName(code, "a document type")
            state = .identifierKind
        default:
            try takeIdentifiers(code, isSpace)
        }
    }

    private mutating func takeIdentifiers(_ code: UInt32, _ isSpace: Bool) throws(XMLError) {
        switch state {
        case .identifierKind:
            guard isSpace else { return try appendName(code, "a document type") }
            switch String(decoding: name, as: UTF8.self) {
            case "SYSTEM": state = .beforeSystemID
            case "PUBLIC": state = .beforePublicID
            default: throw fault(.malformedMarkup, "neither SYSTEM nor PUBLIC in a document type")
            }
        case .beforePublicID, .beforeSystemID:
            if isSpace { return }
            guard code == 0x22 || code == 0x27 else {
                throw fault(.malformedMarkup, "an identifier of a document type is not in quotes")
            }
            quote = code
            token.removeAll(keepingCapacity: true)
            state = state == .beforePublicID ? .publicID : .systemID
        case .publicID:
            if code == quote {
                doctype?.publicID = String(decoding: token, as: UTF8.self)
                state = .behindPublicID
            } else {
                guard XMLCharacter.isPublicIdentifier(code) else {
                    throw fault(
                        .invalidCharacter, "\(XMLCharacter.shown(code)) may not stand in a public identifier")
                }
                try appendToken(code)
            }
        case .behindPublicID:
            try requireSpace(isSpace)
            state = .beforeSystemID
        case .systemID:
            if code == quote {
                doctype?.systemID = String(decoding: token, as: UTF8.self)
                state = .behindIdentifiers
            } else {
                try appendToken(code)
            }
        default:
            if !isSpace { try takeDoctypeEnd(code) }
        }
    }

    private func requireSpace(_ isSpace: Bool) throws(XMLError) {
        guard isSpace else { throw fault(.malformedMarkup, "a space is missing in a document type") }
    }

    func checkDoctypeSize() throws(XMLError) {
        guard position.byteOffset - doctypeOffset <= limits.valueByteCount else {
            throw fault(
                .limitExceeded, "the document type has more than \(limits.valueByteCount) bytes")
        }
    }

    private mutating func takeDoctypeEnd(_ code: UInt32) throws(XMLError) {
        switch code {
        case 0x3E: finishDoctype()
        case 0x5B:
            isInSubset = true
            state = .subset
        default: throw fault(.malformedMarkup, "\(XMLCharacter.shown(code)) in a document type")
        }
    }

    mutating func finishDoctype() {
        if let doctype { emit(.doctype(doctype)) }
        state = .content
    }
}
