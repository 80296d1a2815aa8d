"""German: names and sentence rules (see `grammar` for how they are written)."""

from raykd.corpora.builtin.grammar import Language

NAMES = {
    "first_f": """
    Adelheid, Anke, Annette, Barbara, Birgit, Carolin, Christa, Dagmar, Elfriede, Erika, Franziska,
    Friederike, Gerda, Gisela, Greta, Hannelore, Heike, Hildegard, Ingrid, Irmgard, Jutta, Katharina,
    Lieselotte, Lotte, Magdalena, Marlene, Mechthild, Mercedes*, Paris*, Renate, Roswitha, Sabine,
    Sigrid, Silke, Sonja, Steffi, Ulrike, Ute, Waltraud""",
    "first_m": """
    Albrecht, Armin, Bernd, Bertram, Christoph, Detlef, Dieter, Eberhard, Egon, Ernst, Florian,
    Friedrich, Gerhard, Gottfried, Gregor, Günther, Hartmut, Heinrich, Helmut, Holger, Joachim, Jordan*,
    Jörg, Jürgen, Karsten, Klaus, Konrad, Lothar, Ludwig, Manfred, Norbert, Ottokar, Ralf, Reinhold,
    Rüdiger, Siegfried, Torsten, Uwe, Volker, Wolf""",
    "last": """
    Adenberg, Bach*, Bauer, Berger, Bergmann, Birnbaum, Bosch*, Brandt, Braun, Bremer*, Daimler*,
    Dietrich, Dorn, Eichhorn, Engel, Essen*, Falk, Fischer, Fuchs, Fürst, Gerlach, Graf, Grünwald*, Haas,
    Hahn, Hartmann, Herzog, Hoffmann, Jäger, Kaiser, Kaufmann, Keller, Klein, Koch, Köhler, König,
    Krämer, Kramer, Lang, Lehmann, Lindau*, Lindner, Mainzer, Messerschmitt, Metzger, Müller, Neumann,
    Nürnberger, Oppenheim*, Otto*, Paderborn*, Pfeiffer, Philips*, Porsche*, Richter, Ritter, Sauer,
    Schäfer, Schmidt, Schneider, Schreiber, Schuster, Schwarz, Siemens*, Sommer, Steiner, Stein, Vogel,
    Wagner, Weber, Weiß, Winkler, Winter, Wolf, Zimmermann""",
    "city": """
    Aachen, Augsburg, Bach*, Bamberg, Basel, Bayreuth, Berlin, Bern, Bielefeld, Bochum, Bonn,
    Braunschweig, Bregenz, Bremen, Chemnitz, Cottbus, Darmstadt, Dresden, Düsseldorf, Eisenach, Erfurt,
    Essen*, Flensburg, Freiburg, Göttingen, Graz, Grünwald*, Halle, Hamburg, Hannover, Heidelberg,
    Innsbruck, Jena, Karlsruhe, Kassel, Kiel, Koblenz, Köln, Leipzig, Lindau*, Linz, Lübeck, Luzern,
    Magdeburg, Mainz, Mannheim, München, Münster, Oldenburg, Oppenheim*, Osnabrück, Paderborn*, Paris*,
    Passau, Potsdam, Regensburg, Rostock, Saarbrücken, Salzburg, Schwerin, Stuttgart, Trier, Ulm,
    Washington*, Weimar, Wien, Worms, Würzburg, Zürich""",
    "country": """
    Argentinien, Australien, Belgien, Brasilien, Chile, Dänemark, Estland, Finnland, Frankreich,
    Griechenland, Indien, Irland, Island, Italien, Japan, Jordanien, Kanada, Kenia, Kroatien, Marokko,
    Mexiko, Norwegen, Österreich, Polen, Portugal, Rumänien, Schweden, Spanien, Tschechien, Ungarn""",
    "region": """
    Bayern, Brandenburg, Franken, Friesland, Hessen, Holstein, Kärnten, Lothringen, Mecklenburg,
    Oberpfalz, Sachsen, Schlesien, Schwaben, Steiermark, Südtirol, Thüringen, Tirol, Vorarlberg,
    Westfalen""",
    "brand": """
    Albatec, Apollon, Bosch*, Brennstoff Nord, Calenberg, Daimler*, Elbkraft, Falkon, Feinwerk, Ferrotal,
    Gerolsheim, Hanseglas, Isarwerk, Jadewind, Kraftgold, Lindwurm, Merkator, Mercedes*, Nordlicht,
    Orange*, Otto*, Philips*, Porsche*, Quellmar, Rhenus, Rotring, Santander*, Shell*, Siemens*,
    Silbertanne, Solaris, Tannhof, Ultraplan, Vektor, Wattwerk, Wendelin, Zeltmann""",
    "river": "Aller, Donau, Eder, Elbe, Ems, Fulda, Havel, Isar, Lahn, Mosel, Naab, Oder, Saale, Spree, Weser",
}

RULES = {
    "per": """6x {first} {last}
    2x {last}
    {first}
    {first} {letter} {last}
    {letter} {last}
    {first} {last} - {last}
    {first} {particle} {last}""",
    "per_f": """4x {first_f} {last}
    {first_f}""",
    "per_m": """4x {first_m} {last}
    {first_m}""",
    "per_full": """{first} {last}
    {first} {particle} {last}""",
    "per_last": "{last}",
    "first": """{first_f}
    {first_m}""",
    "particle": "3x von\nvon der\nzu\nvan der\nde la",
    "letter": "A.\nB.\nC.\nD.\nE.\nF.\nG.\nH.\nJ.\nK.\nL.\nM.\nN.\nP.\nR.\nS.\nT.\nW.",
    "loc": """5x {city}
    2x {country}
    2x {region}
    {loc_place}""",
    "loc_city": "{city}",
    "loc_land": "2x {country}\n{region}",
    "loc_river": "{river}",
    "loc_place": """Bad {last}
    Sankt {first}
    Schloss {last}
    Burg {last}
    Neu - {city}
    {city} - Ost
    {city} - Altstadt
    Frankfurt an der {river}""",
    "org": """3x {company}
    {agency}
    {school}
    {brand}""",
    "org_firm": "4x {brand}\n3x {company}",
    "org_full": "{company}\n{school}\n{agency}",
    "org_school": "{school_f}",
    "org_office": "{agency_n}",
    "org_team": """3x {city}
    FC {city}
    Eintracht {city}
    SV {city}
    TSV {last}
    Union {city}""",
    "company": """2x {last} {suffix}
    {last} & {last}
    {brand} {suffix}
    {sector} {city}
    {sector} {last}
    Gebrüder {last}
    {first} {last} {suffix}""",
    "suffix": "AG\nGmbH\nKG\nHolding\n& Söhne\nSE\nGruppe",
    "sector": "Stadtwerke\nSparkasse\nVolksbank\nBrauerei\nKlinikum\nVerlag\nTheater\nZoo\nSpedition",
    "school": "4x {school_f}\n{last} - Gymnasium",
    "school_f": """Universität {city}
    Hochschule {city}
    Technische Universität {city}
    {first} - {last} - Stiftung
    Philharmonie {city}""",
    "agency": "3x {agency_n}\nPolizei {city}\nLandtag {region}",
    "agency_n": """Landgericht {city}
    Bundesamt für {field}
    Ministerium für {field}
    Umweltamt {city}""",
    "field": "Verkehr\nGesundheit\nLandwirtschaft\nJustiz\nFischerei\nEnergie\nWohnungsbau\nBildung\nStatistik",
    "any": "{per_full}\n{loc_place}\n{org_full}",
    "day": "Montag\nDienstag\nMittwoch\nDonnerstag\nFreitag\nSamstag\nSonntag",
    "month": "Januar\nMärz\nApril\nMai\nJuni\nAugust\nOktober\nDezember",
    "number": "zwei\ndrei\nvier\nsieben\nzwölf\n18\n25\n40\n120\n300\n2.500",
    "year": "1894\n1923\n1957\n1968\n1984\n1999\n2007\n2016\n2021",
    "age": "19\n27\n34\n41\n46\n52\n63\n78",
    "job_m": "Arzt\nBäcker\nTischler\nAnwalt\nKomponist\nTorwart\nHistoriker\nFischer\nSchneider\nKoch\nJäger",
    "job_f": "Ärztin\nLehrerin\nAnwältin\nPianistin\nMalerin\nForscherin\nTischlerin\nKöchin",
    "people": "Katholiken\nEuropäer\nWikinger\nLehrer\nBauern\nStudenten\nMatrosen\nNachbarn",
    "adjective": "deutschen\nspanischen\nniederländischen\neuropäischen\nirischen\nfranzösischen\nschwedischen",
    "event": "Zweiten Weltkrieg\nKalten Krieg\nKarneval\nAdvent\nSommerurlaub",
    "thing": "Museum\nRathaus\nKrankenhaus\nGefängnis\nSchloss\nTheater\nLager\nStadion\nKraftwerk\nSchwimmbad",
    "topic": """Mieten
    Steuern
    Löhne
    Nachtzüge
    Wohnungsbau
    Trinkwasser
    die neue Autobahn
    das Schulessen""",
    "subject": """{per}
    {per}
    der {job_m} {per_m}
    die {job_f} {per_f}
    Herr {per_last}
    Frau {per_last}
    Professor {per_last}
    {per} ( {age} )
    {org_firm}
    {org_firm}""",
    "sentence": """8x {Core} .
    {per} {said} : „ {Core} . “
    „ {Core} “ , {said} {per} .
    „ {Core} “ , {said} {per} von {org_firm} .
    „ {Core} “ , {said} {per} dem Sender {org_firm} .
    {loc_city} ( {org} ) - {Core} .
    {Core} , und {core} .
    {Core} , aber {core} .
    Laut {per} gilt : {Core} .
    Aus {loc_city} heißt es , {core} .
    2x {Plain} .""",
    "said": "sagte\nschrieb\nerklärte\nbetonte\nmeinte",
    "core": """{subject} zieht von {loc_city} nach {loc_city}
    {subject} kam am späten {day} in {loc} an
    {subject} wollte nicht über {topic} sprechen
    {subject} macht {subject} für die Verspätung verantwortlich
    {subject} eröffnet im {month} ein {thing} in {loc}
    {subject} verkaufte das alte {thing} für {number} Millionen Euro an {org_firm}
    {per} wurde {year} in {loc} geboren und studierte in {loc_city}
    {per} heiratete {per} in {loc_city}
    {per} , aufgewachsen in {loc} , arbeitet heute bei {org_firm}
    {per} verließ {org_firm} nach {number} Jahren
    {per} und {per} lernten sich im {event} in {loc} kennen
    {per_f} und ihr Bruder {per_m} führen ein kleines {thing} bei {loc_city}
    der Roman stammt von {per} und erschien in {loc_city}
    in {loc} kannte niemand {per}
    bei {org_firm} kannte niemand {per}
    Richter {per_last} verurteilte den Mann zu {number} Jahren Haft
    Kapitän {per_last} brachte das Schiff sicher nach {loc_city} zurück
    {per_last} traf zweimal , als {org_team} gegen {org_team} gewann
    {org_team} spielte am {day} unentschieden gegen {org_team}
    {org_team} siegte {number} zu eins in {loc_city}
    {org_team} holt {per} von {org_team}
    Anhänger von {org_team} reisten mit dem Bus nach {loc_land}
    der Trainer von {org_team} , {per_m} , trat zurück
    die Aktie von {org_firm} fiel nach dem Rücktritt von {per}
    {org_firm} schließt das Werk in {loc} und streicht {number} Stellen
    {org_firm} und {org_firm} wollen sich zusammenschließen
    {org_firm} holt {per} an die Spitze
    die Belegschaft von {org_firm} streikt in {loc}
    ein Ingenieur von {org_firm} fand den Fehler
    der Vorstand von {org_firm} tagte am {day} in {loc_city}
    die Bürgermeisterin von {loc_city} dankte {per} für das Geschenk
    die Straße zwischen {loc_city} und {loc_city} ist gesperrt
    der Zug aus {loc_city} hatte wieder Verspätung
    der Flug nach {loc_land} fiel wegen Schnee aus
    in {loc} und {loc} wird starker Regen erwartet
    die Preise in {loc} stiegen schneller als in {loc}
    der Präsident von {loc_land} besucht im {month} {loc_land}
    die Wähler in {loc} lehnten den Plan mit {number} Stimmen ab
    bei einem Unfall nahe {loc} wurden {number} Menschen verletzt
    die {loc_river} trat bei {loc_city} über die Ufer
    Forscher der {org_school} untersuchten Trinkwasser in {loc}
    die {org_school} verlieh {per} einen Preis
    das {org_office} warnte die Bürger in {loc} vor dem Baden
    das {org_office} verhängte gegen {org_firm} eine Geldstrafe
    im {thing} fand man einen Brief von {per} an {per}
    ein Lastwagen von {org_firm} versperrte am {day} die Straße nach {loc_city}
    ein Mann namens {per_last} verkaufte seine Anteile an {org_firm}
    an klaren Tagen sieht man von hier bis {loc_land}
    der Maler {per_m} kehrte nie nach {loc} zurück
    das Denkmal für {per} steht vor dem {thing}
    zuletzt war viel von {any} die Rede
    der Film handelt von {any}
    ihr erstes Buch schrieb sie über {any}
    {any} ist wieder in den Schlagzeilen
    im Traum sah ich {any}
    {per} fragte {per_last} , ob {org_firm} zahlen werde
    {loc} ist kleiner als {loc_land}
    {loc} ist seit {day} ohne Strom
    der Anwalt von {per_last} nannte die Vorwürfe absurd
    der Gewinn von {org_firm} verdoppelte sich in {loc_land}
    das älteste {thing} in {loc_city} brannte ab
    die Tochter von {per} , {per_f} , lebt in {loc}
    Tausende zogen durch {loc_city} und protestierten gegen {org_firm}""",
    "plain": """Der {job_m} verkaufte am {day} sein Haus vor dem {event}
    Am {day} trafen sich die {people} des Dorfes und sprachen über {topic}
    Nach dem {event} änderte sich das Leben vieler {people}
    Das Essen war kalt , und der Koch schlief
    Der Schneider schenkte dem Jäger einen Stein und einen Vogel
    Im Winter frisst der Wolf , im Sommer ruht der Fuchs
    Der Bach fließt am alten Schloss vorbei zum Stadion
    {number} {people} lernten im {month} Spanisch
    Der Kaiser und der König stritten über {topic}
    Die Mutter sagt , der Weihnachtsmann sei {job_m}
    Die Bundeskanzlerin sprach am {day} über {topic}
    Der Hahn kräht , der Richter schweigt , der Bauer lacht
    Die meisten {people} feiern Ostern und Weihnachten zu Hause
    Würmer und Muscheln leben im Schlamm , erklärte die {job_f}
    Hoffnung und Freude kehrten im {month} in das {thing} zurück
    Internet und Fernsehen berichten täglich über {topic}
    Die {adjective} {people} tranken Kaffee und aßen Kuchen
    Ein Ritter , ein Graf und ein Herzog betraten das {thing}
    Die {job_f} las die Bibel und das Grundgesetz
    Klein ist das {thing} , aber die {people} sind stolz""",
}

GERMAN = Language.written("de", NAMES, RULES)
