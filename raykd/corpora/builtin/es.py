"""Spanish: names and sentence rules (see `grammar` for how they are written)."""

from raykd.corpora.builtin.grammar import Language

NAMES = {
    "first_f": """
    Adela, Almudena, Amparo, Ana, Araceli, Beatriz, Begoña, Blanca, Carmen, Celia, Concepción, Consuelo,
    Dolores, Elvira, Encarnación, Esperanza, Estrella, Gloria, Guadalupe, Inés, Irene, Isabel, Leonor,
    Lourdes*, Lucía, Luz, Mercedes*, Montserrat, Nieves, Paloma, Paris*, Pilar, Remedios, Rocío, Rosa,
    Rosario*, Soledad, Teresa, Valencia*, Ximena""",
    "first_m": """
    Alonso, Álvaro, Andrés, Ángel, Bartolomé, Benito, Camilo, Ceferino, Cristóbal, Diego, Domingo,
    Emilio, Esteban, Fausto, Federico, Felipe, Fermín, Gonzalo, Gustavo, Ignacio, Íñigo, Jacinto, Javier,
    Joaquín, Jordan*, Julián, León*, Lorenzo, Manuel, Mateo, Nicolás, Octavio, Pascual, Ramiro, Rodrigo,
    Salvador, Santiago*, Tomás, Vicente, Ximeno""",
    "last": """
    Aguilar, Alarcón, Almagro*, Arroyo, Ávila*, Ballesteros, Barrios, Benítez, Blanco, Burgos*,
    Caballero, Cabrera, Calderón, Campos, Cano, Cervantes, Córdoba*, Cuesta, Delgado, Domínguez,
    Escudero, Espinosa, Ferrer, Flores, Fuentes, Galindo, García, Garrido, Guerra, Guerrero, Herrera,
    Herrero, Hidalgo, Ibáñez, Iglesias, Izquierdo, Ledesma, León*, Lozano, Luna, Marín, Medina*,
    Mendoza*, Molina, Montes, Mora, Morales, Navarro, Núñez, Ochoa, Ortega, Palacios, Pastor, Philips*,
    Pizarro, Quiroga, Rey, Ríos, Rivas, Robles, Rojas, Romero, Rosales, Rubio, Salazar, Santander*,
    Santos, Serrano, Sierra, Soria*, Toledo*, Torres, Trujillo*, Valencia*, Vega, Velasco, Vidal,
    Villanueva, Zamora*, Zapatero, Zaragoza*""",
    "city": """
    Albacete, Alicante, Almagro*, Almería, Ávila*, Badajoz, Barcelona, Bilbao, Bogotá, Buenos Aires,
    Burgos*, Cáceres, Cádiz, Caracas, Cartagena, Castellón, Córdoba*, Cuenca, Cuzco, Gijón, Girona,
    Granada, Guadalajara, Huelva, Huesca, Jaén, La Coruña, La Paz, Las Palmas, León*, Lérida, Lima,
    Logroño, Lourdes*, Lugo, Madrid, Málaga, Medina*, Mendoza*, Mérida, Montevideo, Murcia, Oviedo,
    Palencia, Pamplona, Paris*, Pontevedra, Quito, Rosario*, Salamanca, San Sebastián, Santander*,
    Santiago*, Segovia, Sevilla, Soria*, Tarragona, Teruel, Toledo*, Trujillo*, Valencia*, Valladolid,
    Vigo, Vitoria, Washington*, Zamora*, Zaragoza*""",
    "country": """
    Alemania, Argentina, Australia, Bélgica, Bolivia, Brasil, Canadá, Chile, Colombia, Costa Rica, Cuba,
    Dinamarca, Egipto, Finlandia, Francia, Grecia, Honduras, Irlanda, Italia, Japón, Jordania, Marruecos,
    México, Noruega, Panamá, Perú, Polonia, Portugal, Suecia, Turquía, Uruguay""",
    "region": """
    Andalucía, Aragón, Asturias, Bretaña, Canarias, Cantabria, Castilla, Cataluña, Extremadura, Galicia,
    Jalisco, Navarra, Normandía, Oaxaca, Patagonia, Sicilia, Toscana, Yucatán""",
    "brand": """
    Aceral, Aguamar, Altamira, Apple*, Banesco, Brisasol, Cantalejo, Cementos Sur, Cosmar, Duero*,
    Endavia, Fervinal, Ford*, Galerna, Hispanova, Iberluz, Jacaranda, Kermés, Lacteral, Mapresa,
    Mercedes*, Naviera Astral, Olivar, Orange*, Petronor, Philips*, Pescamar, Quintanar, Renovalia,
    Santander*, Shell*, Siemens*, Solvento, Telaria, Ultramar, Vinalia, Zafiro""",
    "river": """
    Bidasoa, Duero*, Ebro, Esla, Genil, Guadiana, Guadalquivir, Júcar, Miño, Orinoco, Paraná, Segura,
    Sil, Tajo, Tormes, Turia""",
}

RULES = {
    "per": """5x {first} {last}
    2x {first} {last} {last}
    2x {last}
    {first}
    {first_m} {first_m} {last}
    {first} {last} y {last}
    {first} {particle} {last}""",
    "per_f": """3x {first_f} {last}
    {first_f} {last} {last}
    {first_f}""",
    "per_m": """3x {first_m} {last}
    {first_m} {last} {last}
    {first_m}""",
    "per_full": """{first} {last}
    {first} {last} {last}""",
    "per_last": "{last}",
    "first": """{first_f}
    {first_m}""",
    "particle": "3x de\n2x de la\ndel\nde los\nvan der",
    "loc": """5x {city}
    2x {country}
    2x {region}
    {loc_place}""",
    "loc_city": "{city}",
    "loc_land": "2x {country}\n{region}",
    "loc_river": "{river}",
    "loc_place": """San {first_m}
    Santa {first_f}
    Villa {last}
    Puerto {last}
    Plaza de {city}
    Calle {last}
    Sierra de {last}
    Castilla y {city}""",
    "org": """3x {company}
    {agency}
    {school}
    {brand}""",
    "org_firm": "4x {brand}\n3x {company}",
    "org_full": "{company}\n{school}\n{agency}",
    "org_school": "{school_f}",
    "org_office": "{agency_m}",
    "org_team": """3x {city}
    Real {city}
    Atlético {city}
    Deportivo {city}
    Unión {last}
    Sporting de {city}""",
    "company": """{last} {suffix}
    {brand} {suffix}
    {last} y {last} {suffix}
    Hermanos {last}
    Banco de {city}
    Grupo {last}
    {sector} de {city}
    {sector} {last}
    {sector} {brand}""",
    "suffix": "S.A.\nS.L.\ne Hijos\ny Asociados\nHermanos",
    "sector": "Bodegas\nEditorial\nTeatro\nClínica\nDiario\nFerrocarriles\nConservas\nSeguros",
    "school": "3x {school_f}\nColegio {last}\nInstituto {first} {last}",
    "school_f": """2x Universidad de {city}
    Universidad {first} {last}
    Fundación {first} {last}
    Orquesta de {city}""",
    "agency": "3x {agency_m}\nAudiencia de {city}\nJunta de {region}",
    "agency_m": """2x Ayuntamiento de {city}
    Ministerio de {field}
    Consejo de {field}""",
    "field": "Transportes\nSanidad\nAgricultura\nJusticia\nPesca\nEnergía\nVivienda\nDefensa\nEducación",
    "any": "{per_full}\n{loc_place}\n{org_full}",
    "day": "lunes\nmartes\nmiércoles\njueves\nviernes\nsábado\ndomingo",
    "month": "enero\nmarzo\nabril\nmayo\njunio\nagosto\noctubre\ndiciembre",
    "number": "dos\ntres\ncuatro\nsiete\ndoce\n18\n25\n40\n120\n300\n2.500",
    "year": "1894\n1923\n1957\n1968\n1984\n1999\n2007\n2016\n2021",
    "age": "19\n27\n34\n41\n46\n52\n63\n78",
    "job_m": "médico\npanadero\ncarpintero\nabogado\nnovelista\npianista\nportero\nhistoriador\npescador\nherrero",
    "job_f": "médica\nprofesora\nabogada\npianista\npintora\ncientífica\nconcejala\nenfermera",
    "people": "católicos\neuropeos\nvikingos\nmaestros\nagricultores\nestudiantes\nmarineros\nvecinos",
    "event": "Segunda Guerra Mundial\nGuerra Fría\nSemana Santa\nNavidad\nFeria de Abril",
    "thing": "puente\npuerto\nmuseo\ncastillo\nhospital\ncolegio\nteatro\nmercado\nestadio\nmolino",
    "topic": """los alquileres
    los impuestos
    los salarios
    la pesca
    la nueva autopista
    los trenes nocturnos
    el agua potable
    la vivienda""",
    "subject": """{per}
    {per}
    el {job_m} {per_m}
    la {job_f} {per_f}
    el señor {per_last}
    la señora {per_last}
    don {per_m}
    {per} , de {age} años ,
    {org_firm}
    {org_firm}""",
    "sentence": """8x {Core} .
    {per} {said} : « {Core} . »
    « {Core} » , {said} {per} .
    « {Core} » , {said} {per} , de {org_firm} .
    {Core} , según {per} .
    {Core} , según {org} .
    El {day} {core} .
    En {month} {core} .
    En {loc} , {core} .
    Según {per} , {core} .
    {Core} , y {core} .
    {Core} , pero {core} .
    {loc_city} ( {org} ) - {Core} .
    2x {Plain} .""",
    "said": "dijo\nañadió\nescribió\nexplicó\ninsistió",
    "core": """{subject} se trasladó de {loc_city} a {loc_city}
    {subject} llegó a {loc} el {day} por la noche
    {subject} culpó a {subject} del retraso
    {subject} no quiso hablar de {topic}
    {subject} abrirá un {thing} en {loc} en {month}
    {subject} vendió el viejo {thing} a {org_firm} por {number} millones de euros
    {per} nació en {loc} en {year} y estudió en la {org_school}
    {per} se casó con {per} en {loc_city}
    {per} , que creció en {loc} , trabaja ahora para {org_firm}
    {per} dejó {org_firm} después de {number} años
    {per} y {per} se conocieron en {loc} durante la {event}
    {per_f} y su hermano {per_m} llevan un pequeño {thing} cerca de {loc_city}
    la novela fue escrita por {per} e impresa en {loc_city}
    nadie en {loc} había oído hablar de {per}
    nadie en {org_firm} había oído hablar de {per}
    el juez {per_last} condenó al acusado a {number} años de cárcel
    el capitán {per_last} llevó el barco de vuelta a {loc_city}
    {per_last} marcó dos goles en la victoria del {org_team} ante el {org_team}
    el {org_team} empató con el {org_team} el {day}
    el {org_team} ganó por {number} a uno en {loc_city}
    el {org_team} fichó a {per_m} , del {org_team}
    los aficionados del {org_team} viajaron a {loc_land} en autobús
    el entrenador del {org_team} , {per_m} , dimitió
    las acciones de {org_firm} cayeron tras la salida de {per}
    {org_firm} cerrará su planta de {loc} y suprimirá {number} empleos
    {org_firm} y {org_firm} planean fusionarse
    {org_firm} nombró presidente a {per_m}
    los trabajadores de {org_firm} están en huelga en {loc}
    una ingeniera de {org_firm} encontró el fallo
    el consejo de {org_firm} se reunió en {loc_city} el {day}
    la alcaldesa de {loc_city} agradeció el regalo a {per}
    la carretera entre {loc_city} y {loc_city} está cortada
    el tren de {loc_city} volvió a llegar tarde
    el vuelo a {loc_land} fue cancelado por la nieve
    se esperan fuertes lluvias en {loc} y en {loc}
    los precios subieron más en {loc} que en {loc}
    el presidente de {loc_land} visitará {loc_land} en {month}
    los vecinos de {loc} rechazaron el plan por {number} votos
    {number} personas resultaron heridas en un accidente cerca de {loc}
    el {loc_river} se desbordó a su paso por {loc_city}
    investigadores de la {org_school} estudiaron {topic} en {loc}
    la {org_school} concedió un premio a {per}
    el {org_office} pidió a los vecinos de {loc} que no se bañaran
    el {org_office} multó a {org_firm} por contaminar el {loc_river}
    un portavoz del {org_office} no quiso hacer comentarios
    en el {thing} apareció una carta de {per} a {per}
    un camión de {org_firm} cortó la carretera de {loc_city} el {day}
    un tal {per_last} vendió sus acciones de {org_firm}
    desde aquí se ve {loc_land} en los días claros
    la pintora {per_f} nunca volvió a {loc}
    la estatua de {per} está delante del {thing}
    se ha hablado mucho de {any} últimamente
    la película trata de {any}
    su primer libro fue sobre {any}
    {any} vuelve a ser noticia
    anoche soñé con {any}
    {per} preguntó a {per_last} si {org_firm} pagaría
    {loc} es más pequeño que {loc_land}
    {loc} lleva sin luz desde el {day}
    el abogado de {per_last} calificó de absurdas las acusaciones
    los beneficios de {org_firm} se duplicaron en {loc_land}
    el {thing} más antiguo de {loc_city} se quemó
    la hija de {per} , {per_f} , vive en {loc}
    miles de personas marcharon por {loc_city} contra el {org_office}""",
    "plain": """El {job_m} vendió el {thing} antes de la {event}
    El {day} los {people} del pueblo hablaron de {topic}
    La {event} cambió la vida de muchos {people}
    El león y el rey dormían bajo la luna
    El caballero regaló una rosa y flores blancas a la reina
    El herrero y el pastor subieron a la sierra en {month}
    Los montes y los ríos están secos , dijo la {job_f}
    {number} {people} aprendieron alemán en {month}
    Las iglesias y los palacios abren el {day}
    Mamá dice que los Reyes Magos son {people}
    El Gobierno debatió el {day} sobre {topic}
    El Rey y el Papa hablaron de {topic}
    La mayoría de los {people} celebra la Navidad en casa
    Dolores de espalda y fiebre fueron los síntomas , según la {job_f}
    La esperanza y la gloria volvieron al {thing} en {month}
    Internet y la Biblia fueron discutidos por {number} {people}
    Blanco es el {thing} , rubio es el trigo
    Torres y campos cubren el valle , escribió el {job_m}
    La Constitución se aprobó un {day} de {month}
    Santos y guerreros adornan el {thing}""",
}

SPANISH = Language.written("es", NAMES, RULES)
