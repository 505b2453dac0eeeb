import Martlet
import Testing

@testable import MartletCore
@testable import MartletHosts

@Suite("System languages")
struct LanguagePreferenceTests {
    private func value(_ variables: [String: String]) -> String? {
        LanguagePreference(reading: { variables[$0] }).fieldValue
    }

    @Test("A list of languages has weights that decrease by a tenth, for at most six")
    func list() {
        #expect(
            value(["LANG": "de_DE.UTF-8", "LANGUAGE": "de_AT:de:en_GB:en:fr:it:es"])
                == "de-AT;q=1, de;q=0.9, en-GB;q=0.8, en;q=0.7, fr;q=0.6, it;q=0.5")
    }

    @Test("LC_ALL precedes LC_MESSAGES, which precedes LANG; empty variables are ignored")
    func order() {
        let all = ["LC_ALL": "fr_FR", "LC_MESSAGES": "it_IT", "LANG": "es_ES"]
        #expect(value(all) == "fr-FR;q=1")
        #expect(value(all.merging(["LC_ALL": ""]) { $1 }) == "it-IT;q=1")
        #expect(value(all.merging(["LC_ALL": "", "LC_MESSAGES": ""]) { $1 }) == "es-ES;q=1")
        #expect(value([:]) == nil)
    }

    @Test(
        "C and POSIX name no language, and LANGUAGE is then ignored",
        arguments: ["C", "POSIX", "C.UTF-8", ".", "@", "_", "-"])
    func plain(_ locale: String) {
        #expect(value(["LANG": locale, "LANGUAGE": "de"]) == nil)
        #expect(value(["LANG": "en", "LANGUAGE": "de:\(locale):fr"]) == "de;q=1, fr;q=0.9")
    }

    @Test(
        "Script and variant of a locale become parts of its tag",
        arguments: [
            ("sr_RS@latin", "sr-Latn-RS"), ("uz_UZ.UTF-8@cyrillic", "uz-Cyrl-UZ"), ("de_DE@euro", "de-DE"),
            ("ca_ES@valencia", "ca-ES-valencia"), ("zh_CN.GB18030", "zh-CN"), ("ast_ES", "ast-ES"),
        ])
    func modifiers(_ locale: String, _ tag: String) {
        #expect(value(["LANG": locale]) == "\(tag);q=1")
    }

    @Test("An invalid tag is never sent, and duplicates are sent once")
    func hostile() {
        #expect(
            LanguagePreference(["de\r\nX: y", "de,en", "d", "DE", "d e", "", "a-123456789"]).tags == [
                "d", "DE",
            ])
        #expect(LanguagePreference(["de", "DE", "De", "en"]).tags == ["de", "en"])
        #expect(value(["LANG": "en_US\r\nX-Evil: 1"]) == nil)
        #expect(value(["LANG": String(repeating: "a", count: 1 << 20)]) == nil)
        #expect(value(["LANG": "en", "LANGUAGE": String(repeating: ":", count: 1 << 20)]) == nil)
    }

    @Test("A configuration's languages become the field's value, which is absent by default")
    func configuration() {
        var configuration = SessionConfiguration.default
        #expect(configuration.languages == nil)
        configuration.languages = ["pt-BR", "en"]
        #expect(configuration.headers[.acceptLanguage] == "pt-BR;q=1, en;q=0.9")
        #expect(configuration.languages?.tags == ["pt-BR", "en"])
        configuration.languages = []
        #expect(configuration.headers[.acceptLanguage] == nil)
    }
}
