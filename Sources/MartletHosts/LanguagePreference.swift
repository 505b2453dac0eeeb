public import MartletCore

/// The preferred languages of responses, the best first, for `Accept-Language` (RFC 9110 §12.5.4).
///
/// Sessions do not send this field by default, because the languages of a machine reveal something about its user:
///
/// ```swift
/// configuration.languages = .environment
/// ```
public struct LanguagePreference: Hashable, Sendable {
    /// The maximum number of languages: 6. The last one has the weight 0.5.
    public static let countLimit = 6
    /// The languages as BCP 47 tags, such as `de-DE`, the best first.
    public let tags: [String]

    /// Creates a preference from the first ``countLimit`` valid tags of a list, the best first, without repetitions.
    public init(_ tags: some Sequence<String>) {
        var kept: [String] = []
        var known: Set<String> = []
        for tag in tags where LanguagePreference.isTag(tag) && known.insert(tag.lowercased()).inserted {
            kept.append(tag)
            if kept.count == LanguagePreference.countLimit { break }
        }
        self.tags = kept
    }

    /// The languages of the process, determined as in gettext. The first of `LC_ALL`, `LC_MESSAGES` and `LANG` that is
    /// set names the locale. Without a locale, and for `C` and `POSIX`, there are no languages. Otherwise they are the
    /// list in `LANGUAGE`, or without it the language of the locale.
    public static var environment: LanguagePreference {
        LanguagePreference(reading: { ProcessEnvironment.value(of: $0) })
    }

    /// Reads the variables of the environment.
    /// - Parameter value: Returns the value of a variable; `nil` if it is not set.
    init(reading value: (String) -> String?) {
        func set(_ name: String) -> String? { value(name).flatMap { $0.isEmpty ? nil : $0 } }
        let locale = set("LC_ALL") ?? set("LC_MESSAGES") ?? set("LANG")
        var locales: [String] = []
        if let locale, LanguagePreference.tag(ofLocale: locale) != nil {
            locales = set("LANGUAGE")?.split(separator: ":").prefix(64).map(String.init) ?? [locale]
        }
        self.init(locales.compactMap { LanguagePreference.tag(ofLocale: $0) })
    }

    /// The value of the field: each language with its weight, 1, 0.9 and so on down to 0.5; `nil` without languages.
    public var fieldValue: String? {
        guard !tags.isEmpty else { return nil }
        return tags.enumerated().map { "\($0.element);q=\($0.offset == 0 ? "1" : "0.\(10 - $0.offset)")" }.joined(
            separator: ", ")
    }

    /// Returns the tag of a locale such as `de_DE.UTF-8@euro`; `nil` for `C`, `POSIX` and a locale without a language.
    private static func tag(ofLocale locale: String) -> String? {
        guard locale.utf8.count <= 64 else { return nil }
        let parts = locale.split(separator: "@", maxSplits: 1)
        let name = parts.first?.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false).first ?? ""
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

    /// Whether a text has the form of a tag: letters, then letters and digits, at most eight in each part.
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
    /// Creates a preference from tags, the best first.
    public init(arrayLiteral tags: String...) { self.init(tags) }
}

extension SessionConfiguration {
    /// The preferred languages of responses, stored as `Accept-Language` in ``headers``; `nil` (the default) for none.
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
