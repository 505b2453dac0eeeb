public import MartletCore
import MartletTransport

/// The languages that answers should be in, the best first: what `Accept-Language` says (RFC 9110 §12.5.4).
///
/// Sessions send no such field unless they are told to, since the languages of a machine tell something about who uses it:
///
/// ```swift
/// configuration.languages = .environment
/// ```
public struct LanguagePreference: Hashable, Sendable {
    /// How many languages are named: 6. The last one has the weight 0.5.
    public static let countLimit = 6

    /// The languages as tags of BCP 47, such as `de-DE`, the best first.
    public let tags: [String]

    /// The first languages of a list, the best first. What is no tag of BCP 47 is left out, and so is what comes twice.
    public init(_ tags: some Sequence<String>) {
        var kept: [String] = []
        var known: Set<String> = []
        for tag in tags where LanguagePreference.isTag(tag) && known.insert(tag.lowercased()).inserted {
            kept.append(tag)
            if kept.count == LanguagePreference.countLimit { break }
        }
        self.tags = kept
    }

    /// The languages of the process, as gettext finds them: `LANGUAGE`, a list, where `LC_ALL`, `LC_MESSAGES` or `LANG` (the
    /// first that is set) names a locale; else that locale's. None where it is `C`, `POSIX` or not set.
    public static var environment: LanguagePreference {
        LanguagePreference(reading: { ProcessEnvironment.value(of: $0) })
    }

    /// Reads the variables.
    /// - Parameter value: Gives the value of a variable; `nil` when it is not set, or empty.
    init(reading value: (String) -> String?) {
        func set(_ name: String) -> String? { value(name).flatMap { $0.isEmpty ? nil : $0 } }
        guard let locale = set("LC_ALL") ?? set("LC_MESSAGES") ?? set("LANG"),
            let tag = LanguagePreference.tag(ofLocale: locale)
        else {
            self.init([])
            return
        }
        let list = set("LANGUAGE")?.split(separator: ":").prefix(64).compactMap {
            LanguagePreference.tag(ofLocale: String($0))
        }
        self.init(list ?? [tag])
    }

    /// The field's value: each language with its weight, 1, 0.9 and so on down to 0.5; `nil` where there is none.
    public var fieldValue: String? {
        guard !tags.isEmpty else { return nil }
        return tags.enumerated().map { "\($0.element);q=\($0.offset == 0 ? "1" : "0.\(10 - $0.offset)")" }
            .joined(separator: ", ")
    }

    /// The tag of a locale such as `de_DE.UTF-8@euro`; `nil` for `C`, `POSIX` and what names no language.
    private static func tag(ofLocale locale: String) -> String? {
        guard locale.utf8.count <= 64 else { return nil }
        let parts = locale.split(separator: "@", maxSplits: 1)
        let name =
            parts.first?.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false).first ?? ""
        guard name != "C", name != "POSIX" else { return nil }
        var subtags = name.split(whereSeparator: { $0 == "_" || $0 == "-" }).map(String.init)
        guard let language = subtags.first, (2...3).contains(language.utf8.count) else { return nil }
        switch parts.count > 1 ? parts[1].lowercased() : "" {
        case "latin": subtags.insert("Latn", at: 1)
        case "cyrillic": subtags.insert("Cyrl", at: 1)
        case "devanagari": subtags.insert("Deva", at: 1)
        case "valencia": subtags.append("valencia")
        default: break
        }
        let tag = subtags.joined(separator: "-")
        return isTag(tag) ? tag : nil
    }

    /// Whether a text has the form of a tag: letters, then letters and digits, eight at most in each part.
    private static func isTag(_ text: String) -> Bool {
        let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        return parts.enumerated().allSatisfy { index, part in
            (1...8).contains(part.count)
                && part.allSatisfy { byte in
                    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
                        || (index > 0 && (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte))
                }
        }
    }
}

extension LanguagePreference: ExpressibleByArrayLiteral {
    /// Languages, the best first.
    public init(arrayLiteral tags: String...) { self.init(tags) }
}

extension SessionConfiguration {
    /// The languages that answers should be in; `nil`, which names none, by default.
    ///
    /// It is the field `Accept-Language` of ``headers``: set here it is there, and one that was written there by hand is read
    /// back as far as it names languages.
    public var languages: LanguagePreference? {
        get {
            headers[.acceptLanguage].map { value in
                LanguagePreference(
                    value.split(separator: ",").map { item in
                        String(item.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" })
                    })
            }
        }
        set { headers[.acceptLanguage] = newValue?.fieldValue }
    }
}
